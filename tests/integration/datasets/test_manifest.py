"""What a laptop knows of a dataset before anything is sent."""

import subprocess
import sys
from pathlib import Path

import pytest

from trackbed.base.errors import BadInput
from trackbed.datasets.manifest import scan
from trackbed.formats.tree import decode_listing
from trackbed.storage import LocalStore
from trackbed.testing.trees import write_tree


def test_a_manifest_has_the_digest_that_the_store_gives(tmp_path: Path):
    write_tree(tmp_path / "in", {b"b": (b"1", True), b"a": {b"\xff": (b"2", False)}, b"l": b"b", b"e": {}})
    (tmp_path / "one.jsonl").write_bytes(b"{}\n")
    store = LocalStore(tmp_path / "store")
    folder, file = scan(tmp_path / "in"), scan(tmp_path / "one.jsonl")
    assert (folder.kind, file.kind) == ("folder", "file")
    assert folder.scan.info == store.put_tree(tmp_path / "in")
    assert file.scan.info == store.put_tree(tmp_path / "one.jsonl")
    assert set(folder.scan.files.values()) == {tmp_path / "in" / "b", Path(f"{tmp_path}/in/a/\udcff")}


def test_what_is_not_kept_is_not_entered(tmp_path: Path):
    write_tree(
        tmp_path / "in",
        {
            b"a.py": (b"1", False),
            b"a.txt": (b"", False),
            b"test": {b"t.py": (b"", False)},
            b"only": {b"x.txt": (b"", False)},
            b"e": {},
        },
    )
    asked: list[str] = []

    def keep(path: str) -> bool:
        asked.append(path)
        return path.endswith((".py", "/")) and path != "test/"

    found = decode_listing(scan(tmp_path / "in", keep=keep).scan.listing)
    assert [entry.path for entry in found] == [b"a.py", b"e"]
    assert sorted(asked) == ["a.py", "a.txt", "e/", "only/", "only/x.txt", "test/"]


def test_progress_is_told_in_bytes(tmp_path: Path):
    write_tree(tmp_path / "in", {b"a": (b"x" * 5000, False), b"b": (b"y", False)})
    seen: list[tuple[int, int]] = []
    scan(tmp_path / "in", on_progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (5001, 5001)


def test_a_path_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(BadInput, match="does not exist"):
        scan(tmp_path / "no")


def test_a_laptop_loads_no_server_parts():
    code = """
import sys, trackbed.datasets.manifest, trackbed.sources.capture, trackbed.sources.environment, trackbed.storage
print([name for name in ("sqlalchemy", "litestar", "httpx", "numpy", "torch", "pydantic", "rich") if name in sys.modules])
"""
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
