"""upkeep: the store looks after itself. One server at a time collects, frees what runs let go, and measures the disk.

What it knows lies in two tables, so that any server can go on and every page can show it.
"""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
from sqlalchemy import Column, Integer, Row, Table, Text, delete, insert, select

from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput, Fault
from trackbed.base.units import format_size
from trackbed.db import ReadTx, Tx, metadata, upsert
from trackbed.domain.events import Event
from trackbed.server.app import App
from trackbed.storage.chunks import ChunkStore
from trackbed.tracking import keeping
from trackbed.wire.runs import Reason
from trackbed.wire.store import CollectReply, GcState, StoreSettings, StoreView

HOUR_US = 3600 * 1_000_000
WINDOWS_H = (1.0, 6.0)  # growth is that of the window in which it is faster
LEAST_SPAN_US = 10 * 60 * 1_000_000  # measured for less than this, nothing is said
KEPT_US = 7 * 24 * HOUR_US
WORK_S = 6 * 3600.0  # for which the right is taken while one collects: as long as the lock of a collection
LOW_SHARE = 0.05  # of the disk: less than this is low whatever the growth
OVER = 1.5  # so many times the limit, and the alarm is over
_T = TypeVar("_T", bound=msgspec.Struct)

kept = Table(
    "store_upkeep",
    metadata,
    Column("name", Text, primary_key=True),  # settings | gc | leader | low
    Column("value", Text, nullable=False),  # JSON
    Column("changed_us", Integer, nullable=False),
)

sample = Table(
    "store_sample",
    metadata,
    Column("time_us", Integer, primary_key=True, autoincrement=False),
    Column("stored_bytes", Integer, nullable=False),
    Column("free_bytes", Integer, nullable=True),
    Column("total_bytes", Integer, nullable=True),
)


class _Leader(msgspec.Struct):
    by: str = ""
    until_us: int = 0


class _Low(msgspec.Struct):
    since_us: int = 0  # 0: not low


@dataclass(frozen=True)
class Room:
    """How full the place is: `free` and `total` None where nobody knows."""

    stored: int
    free: int | None = None
    total: int | None = None


ME = f"{socket.gethostname()}:{os.getpid()}:{new_id('srv')[-8:]}"


def _get(tx: ReadTx, name: str, kind: type[_T]) -> _T:
    value = tx.scalar(select(kept.c.value).where(kept.c.name == name))
    return msgspec.json.decode(value, type=kind) if value else kind()


def _put(tx: Tx, name: str, value: msgspec.Struct) -> None:
    values = {"name": name, "value": msgspec.json.encode(value).decode(), "changed_us": tx.now_us}
    tx.execute(upsert(kept, values, key=["name"], update=["value", "changed_us"]))


def settings(tx: ReadTx) -> StoreSettings:
    return _get(tx, "settings", StoreSettings)


def set_settings(tx: Tx, wanted: StoreSettings) -> StoreSettings:
    """Change how the store is looked after.

    Raises:
        BadInput: every wrong field at once.
    """
    numbers = {
        "gc_every_s": wanted.gc_every_s, "gc_grace_s": wanted.gc_grace_s, "low_water_h": wanted.low_water_h,
        "capacity_bytes": wanted.capacity_bytes,
    }  # fmt: skip
    bad = [
        Fault("storage_setting_bad", name, None, {"field": name, "value": value})
        for name, value in numbers.items()
        if not 0 <= value < 1e18
    ]
    if 0 < wanted.gc_every_s < 60:
        bad.append(Fault("storage_gc_too_often", "gc_every_s", None, {"seconds": wanted.gc_every_s}))
    if bad:
        raise BadInput("request_bad", faults=bad)
    before = settings(tx)
    _put(tx, "settings", wanted)
    changed = {
        name: [getattr(before, name), getattr(wanted, name)]
        for name in StoreSettings.__struct_fields__
        if getattr(before, name) != getattr(wanted, name)
    }
    if changed:
        tx.emit(Event("store.settings_changed", "store", data={"fields": ", ".join(changed), "changed": changed}))
    return wanted


def lead(tx: Tx, *, lasts_s: float) -> bool:
    """Take or keep the right to look after the store; False while another server has it."""
    leader = _get(tx, "leader", _Leader)
    if leader.by != ME and leader.until_us > tx.now_us:
        return False
    _put(tx, "leader", _Leader(ME, tx.now_us + int(lasts_s * 1e6)))
    return True


# --- collecting ------------------------------------------------------------------------------------------------------


def gc_state(tx: ReadTx) -> GcState:
    state, asked = _get(tx, "gc", GcState), settings(tx)
    state.next_us = (state.last_us or tx.now_us) + int(asked.gc_every_s * 1e6) if asked.gc_every_s else 0
    return state


def gc_due(tx: ReadTx) -> bool:
    """Whether the time has come; the first one comes a full interval after the installation began to count."""
    return bool(settings(tx).gc_every_s) and tx.now_us >= gc_state(tx).next_us


def begin_counting(tx: Tx) -> None:
    if not _get(tx, "gc", GcState).last_us:
        _put(tx, "gc", GcState(last_us=tx.now_us))


def note_gc(tx: Tx, report: CollectReply | None, *, seconds: float, failed: str = "", why: str = "") -> None:
    """Remember what a collection did, or what kept it."""
    before = _get(tx, "gc", GcState)
    _put(tx, "gc", GcState(last_us=tx.now_us, seconds=seconds, report=report, failed=failed, why=why))
    if failed and failed != before.failed:
        tx.emit(Event("store.gc_failed", "store", data={"code": failed, "why": why}))
    elif report is not None and (report.bytes_freed or report.bytes_marked or report.trees_dropped):
        kind = "store.gc_would" if report.dry_run else "store.collected"
        tx.emit(Event(kind, "store", data=msgspec.to_builtins(report)))


# --- how full it is --------------------------------------------------------------------------------------------------


def room_of(app: App, asked: StoreSettings) -> Room:
    """Measure the place of the store. Lists its packs: seconds on a large bucket."""
    stored = sum(info.size for store in app.chunk_stores().values() for info in store.backend.list("packs/"))
    parts = urlsplit(app.settings.store_url)
    if parts.scheme == "file":
        disk = os.statvfs(Path(unquote(parts.path)))
        return Room(stored, disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)
    if asked.capacity_bytes:
        return Room(stored, max(asked.capacity_bytes - stored, 0), asked.capacity_bytes)
    return Room(stored)


def growth_per_h(samples: Sequence[tuple[int, int]], now_us: int) -> float | None:
    """Bytes an hour by which `(time, free)` shrinks, in the window where it is fastest; None: too short a time. Pure."""
    rates: list[float] = []
    for window_h in WINDOWS_H:
        inside = [one for one in samples if one[0] >= now_us - window_h * HOUR_US]
        if len(inside) >= 2 and inside[-1][0] - inside[0][0] >= LEAST_SPAN_US:
            rates.append((inside[0][1] - inside[-1][1]) / (inside[-1][0] - inside[0][0]) * HOUR_US)
    return max(rates, default=None)


def is_low(room: Room, hours_left: float | None, limit_h: float, *, was: bool) -> bool:
    """Whether to raise the alarm, or to let one stand. Pure."""
    if room.free is None or not room.total:
        return False
    factor = OVER if was else 1.0
    short = hours_left is not None and hours_left < limit_h * factor
    return short or room.free < LOW_SHARE * factor * room.total


def note_room(tx: Tx, room: Room) -> bool:
    """Keep a measurement, raise or end the alarm; return whether it is low."""
    asked = settings(tx)
    values = {"time_us": tx.now_us, "stored_bytes": room.stored, "free_bytes": room.free, "total_bytes": room.total}
    tx.execute(delete(sample).where(sample.c.time_us == tx.now_us))
    tx.execute(insert(sample).values(**values))
    tx.execute(delete(sample).where(sample.c.time_us < tx.now_us - KEPT_US))
    growth, hours = _forecast(tx, room.free)
    before = _get(tx, "low", _Low)
    low = is_low(room, hours, asked.low_water_h, was=bool(before.since_us))
    if low != bool(before.since_us):
        _put(tx, "low", _Low(tx.now_us if low else 0))
        data: dict[str, Any] = {
            "free_bytes": room.free, "total_bytes": room.total, "growth_bytes_per_h": growth and round(growth),
            "hours_left": hours if hours is None else round(hours, 1),
        }  # fmt: skip
        tx.emit(Event("store.low" if low else "store.low_over", "store", data=data))
    return low


def _forecast(tx: ReadTx, free: int | None) -> tuple[float | None, float | None]:
    """Growth in bytes an hour, and hours until nothing is free."""
    since_us = tx.now_us - int(max(WINDOWS_H) * HOUR_US)
    stmt = select(sample).where(sample.c.time_us >= since_us, sample.c.free_bytes.is_not(None))
    rows: list[Row[Any]] = tx.rows(stmt.order_by(sample.c.time_us))
    growth = growth_per_h([(row.time_us, row.free_bytes) for row in rows], tx.now_us)
    hours = free / growth if free is not None and growth is not None and growth > 0 else None
    return growth, hours


def view(app: App, tx: ReadTx) -> StoreView:
    """Everything that is known of the store."""
    last = tx.one(select(sample).order_by(sample.c.time_us.desc()).limit(1))
    low = _get(tx, "low", _Low)
    found = StoreView(
        url=app.settings.store_url, sealed=app.domains is not None or isinstance(app.store, ChunkStore), settings=settings(tx), gc=gc_state(tx),
        low=bool(low.since_us), low_since_us=low.since_us,
    )  # fmt: skip
    if last is not None:
        found.measured_us, found.stored_bytes = last.time_us, last.stored_bytes
        found.free_bytes, found.total_bytes = last.free_bytes, last.total_bytes
        found.growth_bytes_per_h, found.hours_left = _forecast(tx, last.free_bytes)
    waiting = keeping.waiting(tx)
    found.checkpoints_to_free, found.bytes_to_free = len(waiting), sum(row.size_bytes for row in waiting)
    return found


def warnings(app: App, tx: ReadTx) -> list[Reason]:
    """What everybody should know of the store."""
    found, seen = list[Reason](), view(app, tx)
    if seen.low:
        hours = "-" if seen.hours_left is None else f"{seen.hours_left:.1f}"
        params = {
            "free": format_size(seen.free_bytes or 0),
            "total": format_size(seen.total_bytes or 0),
            "hours": hours,
        }
        found.append(Reason(code="store_low", params=params))
    if seen.gc.failed:
        found.append(Reason(code="store_gc_failed", params={"why": seen.gc.why}))
    return found
