"""Pages of log lines, in the order of time, for readers from the start, readers of the end and backwards from there, and followers.

A cursor is a window of arrival and a place in it. A page shows the lines that had arrived when its window began, by
(time, attempt, rank, arrival); behind its end the next window takes what has arrived since. So a follower misses no line
of a rank whose clock or sender is late, and gets none twice.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, func, or_, select

from trackbed.base.errors import BadInput
from trackbed.db import ReadTx
from trackbed.tracking.ingest_tables import line
from trackbed.tracking.logs_grep import matcher
from trackbed.tracking.logs_lines import LEVELS, overwritten, text_of
from trackbed.wire.series import LogLine, LogPage

MAX_PAGE = 5_000
PAGE_BYTES = 8 * 2**20
SCAN = 5_000  # lines looked at in one go by a search
SCANNED = 50_000  # lines that one request looks at; then the page says that there is more


@dataclass(frozen=True)
class Wanted:
    """Which lines. `level` is the least one; `tail` asks for the last ones instead of the first."""

    attempt: int | None = None
    rank: int | None = None
    level: str = ""
    grep: str = ""
    tail: int = 0
    limit: int = 1000


Place = tuple[int, int, int, int]  # time, attempt, rank, pos


@dataclass(frozen=True)
class _Cursor:
    """Lines that arrived behind `low`, up to `high`, from behind `place`."""

    low: int = 0
    high: int = 0
    place: Place | None = None

    def text(self) -> str:
        parts = (self.low, self.high, *(self.place or ()))
        return "w" + "-".join(f"{part:x}" for part in parts)


def page(tx: ReadTx, run_id: str, wanted: Wanted, *, after: str = "", before: str = "") -> LogPage:
    """Return lines and the cursor that goes on behind them; `more` says that lines are there already.

    `after` is a cursor, or the id of a line: then what follows that line in time. `before` is the id of a line, or
    `previous` of a page: the last lines in front of it, and `more` says that there are earlier ones.

    Raises:
        BadInput: `cursor_wrong`, `log_cursors_both`, `log_level_unknown`, `grep_wrong`, `grep_slow`.
    """
    if before:
        if after:
            raise BadInput("log_cursors_both")
        return _earlier(tx, run_id, wanted, before)
    arrived = int(tx.scalar(select(func.max(line.c.pos)).where(line.c.run_id == run_id)) or 0)
    cursor = _parse(after, arrived)
    limit = max(1, min(wanted.tail or wanted.limit, MAX_PAGE))
    if wanted.tail and not after:
        rows, done, first = _search(tx, _last(run_id, wanted), wanted, limit)
        return _shown(rows[::-1], _Cursor(arrived, arrived).text(), more=False, previous=_front(first, done))
    if cursor.place is None and cursor.low >= cursor.high:
        cursor = _Cursor(cursor.high, arrived)  # a window that was read to its end: what has come since
    rows, done, last = _search(tx, _next(run_id, wanted, cursor), wanted, limit)
    if not done:
        return _shown(rows, replace(cursor, place=last).text(), more=True)
    following = _Cursor(cursor.high, cursor.high)
    return _shown(rows, following.text(), more=cursor.high < arrived)


def _earlier(tx: ReadTx, run_id: str, wanted: Wanted, before: str) -> LogPage:
    place = _parse(before, 0).place if before[0] == "l" else None
    if place is None:
        raise BadInput("cursor_wrong", cursor=before[:200])
    limit = max(1, min(wanted.tail or wanted.limit, MAX_PAGE))
    rows, done, first = _search(tx, _last(run_id, wanted).where(_ahead(place)), wanted, limit)
    return _shown(rows[::-1], _id(_place(rows[0])) if rows else before, more=not done, previous=_front(first, done))


def _front(first: Place | None, done: bool) -> str:
    """Return the cursor of what lies in front of the first line looked at; empty at the beginning of the log."""
    return "" if done or first is None else _id(first)


def _search(tx: ReadTx, stmt: Select[Any], wanted: Wanted, limit: int) -> tuple[list[Row[Any]], bool, Place | None]:
    """Return matching rows of an ordered statement, whether it is exhausted, and the place of the last row looked at.

    Sizes are read before bytes: lines may be large, a page is not.
    """
    matches = matcher(wanted.grep) if wanted.grep else None
    found: list[Row[Any]] = []
    size = looked = 0
    last: Place | None = None
    step = SCAN if matches is not None else limit + 1
    while True:
        heads = tx.rows(stmt.offset(looked).limit(step))
        for part in _by_size(heads):
            rows = _with_bytes(tx, part)
            hits = range(len(rows)) if matches is None else matches([text_of(row.data) for row in rows])
            for at in hits:
                if len(found) >= limit or (found and size + len(rows[at].data) > PAGE_BYTES):
                    return found, False, last
                found.append(rows[at])
                size += len(rows[at].data)
                last = _place(rows[at])
            last = _place(part[-1])
        looked += len(heads)
        if len(heads) < step:
            return found, True, last
        if looked >= SCANNED:
            return found, False, last


def _by_size(heads: Sequence[Row[Any]]) -> Iterator[list[Row[Any]]]:
    """Split rows so that the lines of each part have at most PAGE_BYTES (or are one)."""
    part: list[Row[Any]] = []
    size = 0
    for head in heads:
        if part and (size + head.size > PAGE_BYTES or len(part) >= SCAN):
            yield part
            part, size = [], 0
        part.append(head)
        size += head.size
    if part:
        yield part


def _with_bytes(tx: ReadTx, heads: Sequence[Row[Any]]) -> list[Row[Any]]:
    found: dict[int, Row[Any]] = {}
    for at in range(0, len(heads), 500):
        wanted = [head.pos for head in heads[at : at + 500]]
        rows = tx.rows(select(line).where(line.c.run_id == heads[0].run_id, line.c.pos.in_(wanted)))
        found |= {row.pos: row for row in rows}
    return [found[head.pos] for head in heads]


def _where(run_id: str, wanted: Wanted) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [line.c.run_id == run_id]
    if wanted.attempt is not None:
        conditions.append(line.c.attempt == wanted.attempt)
    if wanted.rank is not None:
        conditions.append(line.c.rank == wanted.rank)
    if wanted.level:
        if wanted.level not in LEVELS:
            raise BadInput("log_level_unknown", level=wanted.level, levels=", ".join(LEVELS))
        conditions.append(line.c.level >= LEVELS.index(wanted.level))
    return conditions


_ORDER = (line.c.time_us, line.c.attempt, line.c.rank, line.c.pos)
_heads: Select[Any] = select(line.c.run_id, *_ORDER, func.length(line.c.data).label("size"))  # pyright: ignore[reportAssignmentType] - rows are read by name


def _next(run_id: str, wanted: Wanted, cursor: _Cursor) -> Select[Any]:
    conditions = [*_where(run_id, wanted), line.c.pos <= cursor.high]
    if cursor.low:
        conditions.append(line.c.pos > cursor.low)
    if cursor.place is not None:
        conditions.append(_behind(cursor.place))
    return _heads.where(*conditions).order_by(*_ORDER)


def _last(run_id: str, wanted: Wanted) -> Select[Any]:
    return _heads.where(*_where(run_id, wanted)).order_by(*(column.desc() for column in _ORDER))


def _behind(place: Place) -> ColumnElement[bool]:
    time_us, attempt, rank, pos = place
    same_time = and_(line.c.time_us == time_us, or_(
        line.c.attempt > attempt,
        and_(line.c.attempt == attempt, or_(line.c.rank > rank, and_(line.c.rank == rank, line.c.pos > pos))),
    ))  # fmt: skip
    return and_(line.c.time_us >= time_us, or_(line.c.time_us > time_us, same_time))


def _ahead(place: Place) -> ColumnElement[bool]:
    time_us, attempt, rank, pos = place
    same_time = and_(line.c.time_us == time_us, or_(
        line.c.attempt < attempt,
        and_(line.c.attempt == attempt, or_(line.c.rank < rank, and_(line.c.rank == rank, line.c.pos < pos))),
    ))  # fmt: skip
    return and_(line.c.time_us <= time_us, or_(line.c.time_us < time_us, same_time))


def _id(place: Place) -> str:
    return "l" + "-".join(f"{part:x}" for part in place)


def _place(row: Row[Any]) -> Place:
    return (row.time_us, row.attempt, row.rank, row.pos)


def _shown(rows: Sequence[Row[Any]], cursor: str, *, more: bool, previous: str = "") -> LogPage:
    gone = overwritten(((row.attempt, row.rank, row.stream), row.data) for row in rows)
    return LogPage(
        lines=[_line(row) for row, over in zip(rows, gone, strict=True) if not over],
        next=cursor,
        more=more,
        previous=previous,
    )


def _line(row: Row[Any]) -> LogLine:
    text = text_of(row.data)
    exact = text.encode("utf-8") == row.data
    return LogLine(
        id=_id(_place(row)), time_us=row.time_us, attempt=row.attempt, rank=row.rank,
        stream=row.stream, level=LEVELS[row.level], text=text,
        raw="" if exact else base64.b64encode(row.data).decode(),
    )  # fmt: skip


def _parse(after: str, arrived: int) -> _Cursor:
    if not after:
        return _Cursor(0, arrived)
    try:
        parts = [int(part, 16) for part in after[1:].split("-")]
        if after[0] == "l" and len(parts) == 4:
            return _Cursor(0, arrived, (parts[0], parts[1], parts[2], parts[3]))
        if after[0] == "w" and len(parts) == 2:
            return _Cursor(parts[0], parts[1])
        if after[0] == "w" and len(parts) == 6:
            return _Cursor(parts[0], parts[1], (parts[2], parts[3], parts[4], parts[5]))
    except ValueError:
        pass
    raise BadInput("cursor_wrong", cursor=after[:200])
