"""Frames in, curves and log lines out."""

from typing import Any

import msgspec


class Rejected(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One item that was not kept, and why; the rest of its frame was."""

    client: str
    sequence: int
    item: str = ""
    code: str
    params: dict[str, Any] = {}


class FramesReceipt(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Counted answer to a batch of frames; sent after commit. `watermarks`: client id → last sequence kept."""

    frames: int = 0
    duplicates: int = 0
    points: int = 0
    lines: int = 0
    rejected: list[Rejected] = []
    watermarks: dict[str, int] = {}


class SeriesQuery(msgspec.Struct, kw_only=True, omit_defaults=True):
    """x is `step`, `relative`, `wall` or `metrics.KEY`. At most 2,000 buckets; raw points where fewer lie in the range.

    `since`: run as asked → cursor of an earlier answer. Of curves that only went on, what is new is answered (`appended`).
    """

    runs: list[str]
    keys: list[str]
    x: str = "step"
    from_: float | None = msgspec.field(default=None, name="from")
    to: float | None = None
    buckets: int = 1500
    all_attempts: bool = False
    streams: bool = False  # curves of every rank, not only of the lowest
    since: dict[str, str] = {}


class Series(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One curve. Non-finite values travel as the words NaN, Infinity, -Infinity; equal lengths throughout."""

    run: str
    key: str
    stream: str = ""  # "" for rank 0, else rank/N
    x: list[float] = []
    last: list[float | str] = []
    mean: list[float | str] = []
    min: list[float | str] = []
    max: list[float | str] = []
    count: list[int] = []
    points: int = 0  # in the range before bucketing
    bucketed: bool = False
    non_finite: list[int] = []  # of each bucket, NaN and ±inf; shorter than `x` where the rest has none
    at: list[int] = []  # of a bucketed curve: numbers of its buckets in the grid
    appended: bool = False  # only what is new since the cursor; else the whole curve


class Grid(msgspec.Struct, kw_only=True):
    """Bucket i of every bucketed curve of an answer begins at start + i·width."""

    start: float
    width: float
    buckets: int


class SeriesReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`cursors`: run id → what to give as `since` next time."""

    series: list[Series]
    grid: Grid | None = None
    cursors: dict[str, str] = {}


class Point(msgspec.Struct, kw_only=True, omit_defaults=True, array_like=True):
    """Exact: as logged. `value` is a number, or one of the three words for a non-finite one."""

    step: int
    time_us: int
    value: float | str
    attempt: int = 0
    incarnation: int = 0
    rank: int = 0


class HistoryReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    key: str
    points: list[Point]
    next: str = ""


class KeyInfo(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Summary of one metric of a run, over counted points. `definition` is what define_metric said."""

    key: str
    count: int = 0
    non_finite: int = 0
    first: float | str = 0.0
    last: float | str = 0.0
    last_step: int = 0
    min: float | str | None = None
    max: float | str | None = None
    argmin: int | None = None
    argmax: int | None = None
    definition: dict[str, Any] = {}


class KeysReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    keys: list[KeyInfo]
    total: int = 0


class LogLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`text` is the line decoded as UTF-8 with replacement; `raw` (base64) is there when bytes were replaced."""

    id: str  # stable order key: pass the last one as `after`, the first one as `before`
    time_us: int
    attempt: int
    rank: int
    stream: str  # stdout | stderr | trackbed
    level: str  # debug | info | warning | error
    text: str
    raw: str = ""


class LogPage(msgspec.Struct, kw_only=True, omit_defaults=True):
    lines: list[LogLine]
    next: str = ""  # cursor: also returned at the end, so that a follower can go on
    more: bool = False
    previous: str = (
        ""  # with `tail` or `before`: pass it as `before` for earlier lines; empty at the beginning of the log
    )
    trimmed: dict[str, int] = {}  # lines that were deleted since, by level: their time was over, or there were too many
