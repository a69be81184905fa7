"""Two trees compared: which files, which lines. Pure; the bytes come from the caller."""

from collections.abc import Callable, Iterable, Iterator
from difflib import SequenceMatcher

from trackbed.formats.tree import Entry, show
from trackbed.wire.code import DiffLine, FileDiff

MOST_BYTES = 1 << 20  # of a file that is compared line by line
MOST_LINES = 20_000
CONTEXT = 3
_LOOK_BYTES = 8192  # where git looks for a zero byte too

Read = Callable[[Entry], bytes]


def changed_files(before: Iterable[Entry], after: Iterable[Entry]) -> list[tuple[FileDiff, Entry | None, Entry | None]]:
    """Return what differs between two listings, by path, without lines. A file of the same bytes elsewhere was moved."""
    old = {entry.path: entry for entry in before if entry.kind != "d"}
    new = {entry.path: entry for entry in after if entry.kind != "d"}
    gone = {path: old[path] for path in old.keys() - new.keys()}
    by_digest = {
        entry.digest: path for path, entry in sorted(gone.items(), reverse=True) if entry.kind == "f" and entry.size
    }
    found: dict[bytes, tuple[FileDiff, Entry | None, Entry | None]] = {}
    for path in sorted(new.keys() - old.keys()):
        came = new[path]
        source = by_digest.pop(came.digest, None) if came.kind == "f" and came.size else None
        if source is None:
            found[path] = (_file(path, "added", None, came), None, came)
        else:
            moved = _file(path, "moved", gone.pop(source), came)
            moved.path_before = show(source)
            found[path] = (moved, old[source], came)
    for path, entry in gone.items():
        found[path] = (_file(path, "removed", entry, None), entry, None)
    for path in old.keys() & new.keys():
        one, other = old[path], new[path]
        if (one.kind, one.digest, one.target) != (other.kind, other.digest, other.target):
            found[path] = (_file(path, "changed", one, other), one, other)
        elif one.executable != other.executable:
            found[path] = (_file(path, "mode", one, other), one, other)
    return [found[path] for path in sorted(found)]


def _file(path: bytes, change: str, one: Entry | None, other: Entry | None) -> FileDiff:
    return FileDiff(
        path=show(path), change=change,  # type: ignore[arg-type] - one of the words above
        digest_before=one.digest if one else "", digest_after=other.digest if other else "",
        size_before=one.size if one else 0, size_after=other.size if other else 0,
    )  # fmt: skip


def fill(file: FileDiff, before: Entry | None, after: Entry | None, read: Read) -> None:
    """Add the lines of a file that was changed, or say why there are none."""
    if file.change in ("mode", "moved"):
        return
    texts: list[list[str]] = []
    for entry in (before, after):
        if entry is not None and entry.kind == "f" and entry.size > MOST_BYTES:
            file.unshown = "long"
            return
        data = b"" if entry is None else entry.target if entry.kind == "l" else read(entry)
        if b"\0" in data[:_LOOK_BYTES]:
            file.unshown = "binary"
            return
        texts.append(lines_of(data))
    if max(map(len, texts)) > MOST_LINES:
        file.unshown = "long"
        return
    file.lines = list(_lines(*texts))
    file.added = sum(line.op == "+" for line in file.lines)
    file.removed = sum(line.op == "-" for line in file.lines)


def lines_of(data: bytes) -> list[str]:
    """Split as git does: at line feeds only."""
    parts = data.decode("utf-8", "replace").split("\n")
    return parts[:-1] if parts and not parts[-1] else parts


def _lines(before: list[str], after: list[str]) -> Iterator[DiffLine]:
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    matcher = SequenceMatcher(None, before[head : len(before) - tail], after[head : len(after) - tail], autojunk=False)
    codes = [(tag, a + head, b + head, c + head, d + head) for tag, a, b, c, d in matcher.get_opcodes()]
    codes = [
        ("equal", 0, head, 0, head),
        *codes,
        ("equal", len(before) - tail, len(before), len(after) - tail, len(after)),
    ]
    changes = [code for code in codes if code[0] != "equal"]
    shown = 0  # lines of `after` that were told
    for tag, a, b, c, d in changes:
        start = max(shown, c - CONTEXT)
        if start > shown:
            yield DiffLine(op="@")
        for at in range(start, c):
            yield DiffLine(op=" ", before=a - (c - at) + 1, after=at + 1, text=after[at])
        for at in range(a, b) if tag != "insert" else ():
            yield DiffLine(op="-", before=at + 1, text=before[at])
        for at in range(c, d) if tag != "delete" else ():
            yield DiffLine(op="+", after=at + 1, text=after[at])
        following = min((one[3] for one in changes if one[3] > c or (one[3] == c and one[1] > a)), default=len(after))
        end = min(d + CONTEXT, following, len(after))
        for at in range(d, end):
            yield DiffLine(op=" ", before=b + (at - d) + 1, after=at + 1, text=after[at])
        shown = end
    if changes and shown < len(after):
        yield DiffLine(op="@")


def _common(one: list[str], other: list[str]) -> int:
    """How many lines are the same from the start."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
