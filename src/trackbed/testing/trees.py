"""Random folders: names that no editor would make, links, modes, empty folders."""

import os
import stat
from pathlib import Path

from hypothesis import strategies as st

Node = bytes | tuple[bytes, bool] | dict[bytes, "Node"]  # link target | (content, executable) | folder

_ODD = [
    b"a",
    b"b",
    b"run.sh",
    b"a b",
    b"a:b",
    b"-rf",
    b"n\nl",
    b"\xff\xfe",
    "é".encode(),
    b"e\xcc\x81",
    "损失".encode(),
]
names = st.one_of(
    st.sampled_from(_ODD),
    st.binary(min_size=1, max_size=8).filter(lambda b: not set(b"/\0") & set(b) and b not in (b".", b"..", b".git")),
)
contents = st.one_of(st.binary(max_size=40), st.sampled_from([b"", b"x" * 5000, b"a\r\nb\r\n", b"\0\r\n\xff" * 50]))


def trees(name: st.SearchStrategy[bytes] = names) -> st.SearchStrategy[dict[bytes, Node]]:
    """Folders up to three deep. Links point to a name beside them, there or not."""
    leaf: st.SearchStrategy[Node] = st.one_of(st.tuples(contents, st.booleans()), name)

    def folder(inside: st.SearchStrategy[Node], most: int) -> st.SearchStrategy[dict[bytes, Node]]:
        return st.dictionaries(name, inside, max_size=most)

    return folder(st.one_of(leaf, folder(st.one_of(leaf, folder(leaf, 3)), 3)), 5)


def write_tree(root: Path, tree: dict[bytes, Node]) -> None:
    """Make a folder hold exactly this tree; it must not exist or be empty."""
    root.mkdir(parents=True, exist_ok=True)
    _write(os.fsencode(root), tree)


def read_tree(root: Path) -> dict[bytes, Node]:
    """Read a folder back, for comparison byte for byte. `.git` of the top is left out."""
    return {name: node for name, node in _read(os.fsencode(root)).items() if name != b".git"}


def _write(folder: bytes, tree: dict[bytes, Node]) -> None:
    for name, node in tree.items():
        place = folder + b"/" + name
        if isinstance(node, bytes):
            os.symlink(node, place)  # noqa: PTH211 - paths are bytes
        elif isinstance(node, tuple):
            fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755 if node[1] else 0o644)
            os.write(fd, node[0])
            os.close(fd)
        else:
            os.mkdir(place)  # noqa: PTH102 - paths are bytes
            _write(place, node)


def _read(folder: bytes) -> dict[bytes, Node]:
    tree: dict[bytes, Node] = {}
    with os.scandir(folder) as scan:
        for entry in scan:
            if entry.is_symlink():
                tree[entry.name] = os.readlink(entry.path)  # noqa: PTH115 - paths are bytes
            elif entry.is_dir():
                tree[entry.name] = _read(entry.path)
            else:
                with open(entry.path, "rb") as file:
                    tree[entry.name] = (file.read(), bool(entry.stat().st_mode & stat.S_IXUSR))
    return tree
