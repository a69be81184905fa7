"""Several domains in one store: nothing shows that they hold the same, one key opens all, and all move together."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trackbed.base.errors import Damaged, Denied
from trackbed.base.ids import Digest
from trackbed.storage.chunks import ChunkStore
from trackbed.storage.domains import domain_ids, domain_url, domain_urls, further_places, mark_domain, new_domain_id
from trackbed.storage.key_file import KeyFile
from trackbed.storage.move import move
from trackbed.storage.open import Options, open_backend, open_chunks
from trackbed.storage.verify import verify

_ROTATE = """
import sys
from pathlib import Path
from trackbed.storage.domains import further_places
from trackbed.storage.key_file import KeyFile
from trackbed.storage.open import open_backend
KeyFile(Path(sys.argv[1])).rotate(open_backend(sys.argv[2]), further_places(sys.argv[2]))
"""


def two(home: Path) -> tuple[str, list[ChunkStore]]:
    """A store with a second domain."""
    url = (home / "store").as_uri()
    master = KeyFile(home / "keys").master(open_backend(url), further_places(url))
    first = open_chunks(url, master, Options(cache=home / "c"))
    other = new_domain_id()
    mark_domain(first.backend, other)
    return url, [first, open_chunks(domain_url(url, other), master, Options(cache=home / "c"))]


def data(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    dice = random.Random(3)
    (folder / "rows.jsonl").write_bytes(
        b"".join(b'{"row": %d, "x": %d}\n' % (n, dice.getrandbits(60)) for n in range(9000))
    )
    for number in range(20):
        (folder / f"{number}.txt").write_bytes(b"%d" % number * 500)
    return folder


def test_two_domains_with_the_same_data_share_no_name_no_id_and_no_byte(tmp_path: Path):
    _, (first, second) = two(tmp_path)
    source = data(tmp_path / "in")
    digests = {store.put_tree(source).digest for store in (first, second)}
    assert len(digests) == 1, "the public digest is the same"
    (digest,) = digests
    names = [
        {info.name for info in store.backend.list("") if info.name.startswith(("packs/", "trees/"))}
        for store in (first, second)
    ]
    assert names[0] and names[1] and not names[0] & names[1]
    assert first.keys.tree_name(digest) != second.keys.tree_name(digest)
    ids = [
        {chunk for info in store.backend.list("packs/") for frame in store.read_rows(store.backend, info).frames for chunk, _ in frame.chunks}
        for store in (first, second)
    ]  # fmt: skip
    assert not ids[0] & ids[1]
    lengths = [
        [length for info in store.backend.list("packs/") for frame in store.read_rows(store.backend, info).frames for _, length in frame.chunks]
        for store in (first, second)
    ]  # fmt: skip
    assert lengths[0] != lengths[1], "files are cut elsewhere too"
    blocks = [
        {one[at : at + 16] for info in store.backend.list("packs/") for one in [store.backend.get(info.name)] for at in range(36, len(one) - 16, 16)}
        for store in (first, second)
    ]  # fmt: skip
    common = {one for one in blocks[0] & blocks[1] if one.count(0) < 12}
    assert not common, "but for the zeros of the plain headers"


def test_the_keys_of_one_domain_open_nothing_of_another(tmp_path: Path):
    _, (first, second) = two(tmp_path)
    digest = first.put_tree(data(tmp_path / "in")).digest
    second.put_tree(data(tmp_path / "in"))
    (record,) = first.backend.list("trees/")
    with pytest.raises(Damaged):
        second.keys.open("tree", record.name, first.backend.get(record.name))
    assert not set(first.keys.secrets().values()) & set(second.keys.secrets().values())
    assert digest


@pytest.mark.slow
def test_a_rotation_killed_at_any_step_leaves_a_key_that_opens_every_domain(tmp_path: Path):
    step = 1
    while True:
        home = tmp_path / str(step)
        url, stores = two(home)
        digests = [store.put_blob(b"kept through it all %d" % at)[0] for at, store in enumerate(stores)]
        for store in stores:
            store.close()
        done = subprocess.run(
            [sys.executable, "-c", _ROTATE, home / "keys", url],
            env={**os.environ, "TRACKBED_FAULT": f"any@{step}=kill"},
        )
        keys = KeyFile(home / "keys")
        for again in range(2):
            master = keys.master(open_backend(url), further_places(url))
            for at, one in enumerate(domain_urls(url)):
                opened = open_chunks(one, master, Options(cache=home / f"r{again}"))
                assert opened.open_range(digests[at]).read() == b"kept through it all %d" % at, step
                opened.close()
            old = master
            keys.rotate(open_backend(url), further_places(url))
        for one in domain_urls(url):
            with pytest.raises(Denied):
                open_chunks(one, old, Options(cache=home / "x"))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        step += 1
    assert step > 12


def test_a_store_moves_with_all_its_domains(tmp_path: Path):
    url, stores = two(tmp_path)
    digest = stores[1].put_tree(data(tmp_path / "in")).digest
    stores[0].put_blob(b"of the first")
    to = (tmp_path / "elsewhere").as_uri()
    for domain in [*domain_ids(open_backend(url)), ""]:
        move(open_backend(domain_url(url, domain)), open_backend(domain_url(to, domain)))
    master = KeyFile(tmp_path / "keys").master(open_backend(to), further_places(to))
    moved = [open_chunks(one, master, Options(cache=tmp_path / "m")) for one in domain_urls(to)]
    assert len(moved) == 2 and all(verify(store).clean for store in moved)
    moved[1].get_tree(Digest(digest), tmp_path / "out")
    assert (tmp_path / "out" / "rows.jsonl").read_bytes() == (tmp_path / "in" / "rows.jsonl").read_bytes()
