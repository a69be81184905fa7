"""Power cuts: an ext4 in a file is shut down without writing what is not synced. Needs root; the twin without is
`test_chunks.py::test_killed_at_every_step_it_leaves_nothing_half_published`."""

import fcntl
import os
import random
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from trackbed.base.ids import Digest
from trackbed.storage.scan import scan
from trackbed.storage.verify import verify
from trackbed.testing.chunks import SMALL_CUTS, open_chunks

_SHUTDOWN = 0x8004587D  # _IOR('X', 125, u32)
_NO_LOG_FLUSH = 2

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(300)]

_WRITER = """
import random, sys
from pathlib import Path
from trackbed.testing.chunks import SMALL_CUTS, open_chunks
root, source = Path(sys.argv[1]), Path(sys.argv[2])
store = open_chunks(root / "store", rule=SMALL_CUTS)
print("open", flush=True)
for version in sorted(source.iterdir()):
    info = store.put_tree(version)
    store.refs.compare_and_set(version.name, None, info.digest)
    print(version.name, info.digest, flush=True)
"""


class Disk:
    def __init__(self, folder: Path) -> None:
        self._image, self.mounted = folder / "image", folder / "disk"
        self.mounted.mkdir()
        with self._image.open("wb") as file:
            file.truncate(96 * 1024 * 1024)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self._image)], check=True)

    def mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self._image), str(self.mounted)], check=True)

    def cut(self) -> None:
        fd = os.open(self.mounted, os.O_RDONLY)
        fcntl.ioctl(fd, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        os.close(fd)

    def unmount(self) -> None:
        for _ in range(50):
            if subprocess.run(["umount", str(self.mounted)], capture_output=True).returncode == 0:
                return
            time.sleep(0.1)
        raise AssertionError(f"{self.mounted} is still in use")


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Disk]:
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("NO POWER CUTS WERE TRIED: they need root and mkfs.ext4")
    disk = Disk(tmp_path)
    try:
        disk.mount()
    except subprocess.CalledProcessError:
        pytest.skip("NO POWER CUTS WERE TRIED: this root may not mount")
    yield disk
    disk.unmount()


@pytest.mark.parametrize("lines", range(5))
def test_what_was_acknowledged_is_there_after_a_power_cut(disk: Disk, tmp_path: Path, lines: int):
    dice = random.Random(lines)
    text = [b"%x\n" % dice.getrandbits(300) for _ in range(4000)]
    for number in range(8):
        folder = tmp_path / "versions" / f"v{number}"
        folder.mkdir(parents=True)
        (folder / "big").write_bytes(b"".join(text))
        (folder / "small").write_bytes(b"%d" % number)
        text[dice.randrange(4000)] = b"edit %x\n" % dice.getrandbits(64)
    argv = [sys.executable, "-c", _WRITER, str(disk.mounted), str(tmp_path / "versions")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as writer:
        assert writer.stdout is not None
        acknowledged = [writer.stdout.readline() for _ in range(lines + 1)]
        time.sleep(dice.random() * 0.15)
        disk.cut()
        writer.kill()
        acknowledged += writer.stdout.readlines()
    disk.unmount()
    disk.mount()
    store = open_chunks(disk.mounted / "store", rule=SMALL_CUTS)
    for line in acknowledged[1:]:
        name, digest = line.split()
        head = store.refs.get(name)
        assert head is not None and head.value == digest
        store.get_tree(Digest(digest), tmp_path / name)
        assert scan(tmp_path / name).info.digest == digest
    assert not verify(store).broken
    last = tmp_path / "versions" / "v7"
    assert store.put_tree(last).digest == scan(last).info.digest
    store.close()
