"""`kill -9` at every step of a collection and of a repair: what is named stays readable, and the next run goes on."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trackbed.base.ids import Digest
from trackbed.storage.gc import Alive, collect
from trackbed.storage.open import Options, open_chunks
from trackbed.storage.verify import verify

MASTER = bytes(range(32))
_COLLECT = """
import sys
from trackbed.base.ids import Digest
from trackbed.storage.gc import Alive, collect
from trackbed.storage.open import Options, open_chunks
from pathlib import Path
store = open_chunks(sys.argv[1], bytes(range(32)), Options(cache=Path(sys.argv[2])))
for _ in range(4):
    collect(store, lambda: Alive(frozenset([Digest(sys.argv[3])])), grace_s=0)
store.close()
"""


@pytest.mark.slow
def test_a_collection_killed_at_any_step_loses_nothing_that_is_named(tmp_path: Path):
    step = 1
    while True:
        home = tmp_path / str(step)
        keep, drop = home / "keep", home / "drop"
        for folder, seed in ((keep, 1), (drop, 2)):
            folder.mkdir(parents=True)
            for number in range(8):
                (folder / str(number)).write_bytes(random.Random(seed * 100 + number % 5).randbytes(40_000))
        url = (home / "store").as_uri()
        store = open_chunks(url, MASTER, Options(cache=home / "c"))
        store.put_tree(drop)
        kept = store.put_tree(keep).digest
        time.sleep(0.01)
        done = subprocess.run(
            [sys.executable, "-c", _COLLECT, url, home / "c2", kept],
            env={**os.environ, "TRACKBED_FAULT": f"any@{step}=kill"},
        )
        store.backend.delete("locks/gc")  # what six hours would do
        again = open_chunks(url, MASTER, Options(cache=home / "c3"))
        again.get_tree(kept, home / "out")
        assert (home / "out" / "7").read_bytes() == (keep / "7").read_bytes(), step
        for _ in range(4):
            collect(again, lambda kept=kept: Alive(frozenset([Digest(kept)])), grace_s=0)
        assert verify(again).clean, step
        assert len(list(again.backend.list("trees/"))) == 1
        again.close()
        store.close()
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        step += 1
    assert step > 8
