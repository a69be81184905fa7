"""From the bytes of a request to checked items, off the writer lane. One bad name or value fails alone, with its reason."""

import re
from array import array
from dataclasses import dataclass, field
from typing import Any

from trackbed.formats import spool
from trackbed.formats.spool import Frame, Header, Line, Metrics, name_ok
from trackbed.tracking.facts_values import pack
from trackbed.wire.series import Rejected

_CLIENT = re.compile(r"cli_[0-9a-z]{4,60}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
MAX_TAG_CHARS = 500
MAX_STREAM_CHARS = 64
STATUSES = frozenset({"finished", "failed", "stopped", "killed"})


@dataclass
class Item:
    """One frame, checked: `content` has the type of its kind, without what was refused."""

    header: Header
    content: Any
    raw: bytes = b""  # of metrics: what is stored
    rejected: list[Rejected] = field(default_factory=list[Rejected])
    foreign: bool = False  # of another run or attempt: its content is dropped


@dataclass
class Batch:
    items: list[Item]
    lost_bytes: int


@dataclass(frozen=True)
class FileSaid:
    path: str
    kind: str
    digest: str = ""
    size: int = 0


def parse(body: bytes) -> Batch:
    """Return the checked frames of a request in their order. Never raises: what is broken is an item that says so."""
    decoded = spool.decode(body)
    return Batch([_checked(frame) for frame in decoded.frames], decoded.lost)


def reject(item: Item, code: str, what: str = "", **params: Any) -> None:
    item.rejected.append(
        Rejected(client=item.header.client[:64], sequence=item.header.seq, item=what[:200], code=code, params=params)
    )


def _checked(frame: Frame) -> Item:
    item = Item(frame.header, None, frame.raw)
    head = frame.header
    if not _CLIENT.fullmatch(head.client) or not 0 < head.seq < 2**63:
        reject(item, "frame_identity_bad")
        return item
    if not all(0 <= number < 2**31 for number in (head.attempt, head.rank)) or not 0 <= head.inc < 2**24:
        reject(item, "frame_identity_bad")
        return item
    check = _CHECKS.get(head.kind)
    if check is None:
        reject(item, "frame_kind_unknown", head.kind, kind=head.kind[:64])
        return item
    try:
        item.content = check(item, frame.body)
    except (ValueError, RecursionError):
        reject(item, "frame_body_broken", kind=head.kind)
    return item


def _metrics(item: Item, body: bytes) -> Metrics:
    points = spool.decode_metrics(body)
    bad = {at for at, key in enumerate(points.keys) if not name_ok(key)}
    if len(set(points.keys)) != len(points.keys):
        raise ValueError("a name stands twice")
    if not bad:
        return points
    for at in sorted(bad):
        left_out = sum(1 for key in points.key if key == at)
        reject(item, "name_refused", repr(points.keys[at]), points=left_out, limit=spool.MAX_NAME_CHARS)
    kept = [at for at, key in enumerate(points.key) if key not in bad]
    names = [at for at in range(len(points.keys)) if at not in bad]
    place = {at: index for index, at in enumerate(names)}
    clean = Metrics(
        [points.keys[at] for at in names],
        array("I", [place[points.key[at]] for at in kept]),
        array("q", [points.step[at] for at in kept]),
        array("q", [points.ts[at] for at in kept]),
        array("d", [points.value[at] for at in kept]),
    )
    item.raw = spool.encode(item.header, spool.encode_metrics(clean))
    return clean


def _entries(item: Item, body: bytes) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in spool.decode_document(body).items():
        if not name_ok(name):
            reject(item, "name_refused", repr(name), points=1, limit=spool.MAX_NAME_CHARS)
            continue
        try:
            pack(value)
        except (ValueError, TypeError, RecursionError):
            reject(item, "value_refused", name)
            continue
        kept[name] = value
    return kept


def _tags(item: Item, body: bytes) -> tuple[list[str], list[str]]:
    said = spool.decode_document(body)
    sides: list[list[str]] = []
    for side in ("add", "remove"):
        given: Any = said.get(side, [])
        if not isinstance(given, list):
            raise ValueError(side)
        good = [tag for tag in given if isinstance(tag, str) and 0 < len(tag) <= MAX_TAG_CHARS and tag.isprintable()]
        for tag in given:
            if tag not in good:
                reject(item, "tag_refused", repr(tag), limit=MAX_TAG_CHARS)
        sides.append(good)
    return sides[0], sides[1]


def _define(item: Item, body: bytes) -> dict[str, Any]:
    said = spool.decode_document(body)
    if not isinstance(said.get("key"), str) or not name_ok(said["key"]):
        reject(item, "name_refused", repr(said.get("key")), points=1, limit=spool.MAX_NAME_CHARS)
        return {}
    return said


def _lines(item: Item, body: bytes) -> list[Line]:
    kept: list[Line] = []
    for line in spool.decode_lines(body):
        if 0 < len(line.stream) <= MAX_STREAM_CHARS and line.stream.isprintable() and 0 <= line.ts < 2**62:
            kept.append(line)
        else:
            reject(item, "line_refused", repr(line.stream))
    return kept


def _event(item: Item, body: bytes) -> dict[str, Any]:
    said = spool.decode_document(body)
    if not isinstance(said.get("kind"), str) or not isinstance(said.get("data", {}), dict):
        raise ValueError("no event")
    return said


def _finish(item: Item, body: bytes) -> dict[str, Any]:
    said = spool.decode_document(body)
    code = said.get("exit_code", 0)
    return {
        "status": said["status"] if said.get("status") in STATUSES else "failed",
        "exit_code": code if isinstance(code, int) else 1,
        "reason": str(said.get("reason", "")).replace("\0", "")[:2000],
    }


def _file(item: Item, body: bytes) -> FileSaid | None:
    said = spool.decode_document(body)
    path, kind = str(said.get("path", "")), str(said.get("kind", "")) or "other"
    digest, size = str(said.get("digest", "")), said.get("size", 0)
    parts = path.split("/")
    if not path.isprintable() or len(path) > 2000 or any(part in ("", ".", "..") for part in parts):
        reject(item, "path_refused", repr(path))
        return None
    if not kind.isprintable() or len(kind) > MAX_TAG_CHARS or (digest and not _DIGEST.fullmatch(digest)):
        reject(item, "path_refused", repr(path))
        return None
    return FileSaid(path, kind, digest, size if isinstance(size, int) and 0 <= size < 2**63 else 0)


def _mlflow(item: Item, body: bytes) -> dict[str, Any]:
    said = spool.decode_document(body)
    if not isinstance(said.get("do"), str) or not isinstance(said.get("body"), dict):
        raise ValueError("no request")
    return said


_CHECKS = {
    spool.METRICS: _metrics,
    spool.PARAMS: _entries,
    spool.SUMMARY: _entries,
    spool.TAGS: _tags,
    spool.DEFINE: _define,
    spool.LOG: _lines,
    spool.EVENT: _event,
    spool.FINISH: _finish,
    spool.FILE: _file,
    spool.MLFLOW: _mlflow,
}
