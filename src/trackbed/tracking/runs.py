"""Runs: made, found, listed, moved. Every state change goes through `move` and leaves an event in its transaction.

References: `run_…`, `project#17`, `space/project#17`, `project/name` (the newest), a unique prefix of at least six
characters, `-` (my last). A run of a space that the scope may not read does not exist.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Column, ColumnElement, Row, Select, and_, func, insert, literal, or_, select, update
from sqlalchemy.sql import visitors

from trackbed.base.errors import BadInput, Conflict, Fault, NotFound
from trackbed.db import ReadTx, Tx, scope_clause
from trackbed.domain.events import Event
from trackbed.domain.scope import ActorKind, Permission, Scope
from trackbed.domain.states import TERMINAL, Priority, RunState, move_run
from trackbed.tracking import facts
from trackbed.tracking.runs_tables import run, stage
from trackbed.wire.runs import EnvironmentRecord, Reason, TreeFacts
from trackbed.wire.spec import Spec

RunRow = Row[Any]
_NUMBERED = re.compile(r"(?:(?P<space>[^/#]+)/)?(?P<project>[^/#]+)#(?P<number>\d+)")
_PREFIX = re.compile(r"[0-9a-z_]{6,}")
MAX_PAGE = 1000


@dataclass(frozen=True)
class NewRun:
    """Everything resolved and checked; the row is made from it in one insert."""

    id: str
    space_id: str
    project_id: str
    number: int  # the next one of the project, taken in the same transaction
    owner_id: str
    owner: str
    spec: Spec  # with the present names of space and project
    tree: TreeFacts | None = None
    environment: EnvironmentRecord | None = None
    reproduces: str = ""
    nondeterminism: tuple[str, ...] = ()
    outside: bool = False
    create_key: str = ""
    created_us: int = 0  # 0: now


def to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def from_json(text: str, otherwise: Any) -> Any:
    return msgspec.json.decode(text) if text else otherwise


def spec_of(row: RunRow) -> Spec:
    return msgspec.json.decode(row.spec, type=Spec)


def reason_of(text: str) -> Reason | None:
    return msgspec.json.decode(text, type=Reason) if text else None


def ref_of(row: RunRow) -> str:
    return f"{row.project}#{row.number}"


# --- making ----------------------------------------------------------------------------------------------------------


def create(tx: Tx, new: NewRun) -> RunRow:
    """Make the run as a draft (an outside one as running); return its row."""
    spec = new.spec
    state = RunState.RUNNING if new.outside else RunState.DRAFT
    cards = 0 if new.outside else most_cards(spec)
    tx.execute(
        insert(run).values(
            id=new.id, space_id=new.space_id, space=spec.space, project_id=new.project_id, project=spec.project,
            number=new.number, name=spec.name, description=spec.description, owner_id=new.owner_id, owner=new.owner,
            state=state.value, tags=to_json(spec.tags), priority=spec.priority,
            priority_rank=Priority(spec.priority).rank, cards=cards, outside=int(new.outside),
            create_key=new.create_key or None, spec=to_json(spec), tree=to_json(new.tree) if new.tree else "",
            tree_digest=new.tree.digest if new.tree else "",
            environment=to_json(new.environment) if new.environment else "",
            environment_digest=new.environment.digest if new.environment else "", reproduces=new.reproduces,
            created_us=new.created_us or tx.now_us, started_us=(new.created_us or tx.now_us) if new.outside else 0,
            contact_us=tx.now_us if new.outside else 0, nondeterminism=to_json(list(new.nondeterminism)),
        )
    )  # fmt: skip
    rows = [{"run_id": new.id, "position": i, "name": part.name} for i, part in enumerate(spec.stages)]
    if rows:
        tx.execute(insert(stage), rows)
    facts.begin(tx, new.id, spec.params)
    made = get(tx, new.id)
    tx.emit(Event("run.submitted" if not new.outside else "run.began", new.id, new.space_id, new.id,
                  data={"ref": ref_of(made), "project": spec.project, "name": spec.name}))  # fmt: skip
    return made


def most_cards(spec: Spec) -> int:
    """The most cards that any attempt of the run takes."""
    parts = [part.resources or spec.resources for part in spec.stages] or [spec.resources]
    return max(resources.cards for resources in parts)


# --- finding ---------------------------------------------------------------------------------------------------------


def get(tx: ReadTx, run_id: str) -> RunRow:
    """Return the row of an id that is known to exist; for flows and loops. People's references go through `resolve`."""
    row = tx.one(select(run).where(run.c.id == run_id))
    if row is None:
        raise NotFound("run_unknown", ref=run_id)
    return row


def resolve(tx: ReadTx, scope: Scope, ref: str, permission: Permission = Permission.READ) -> RunRow:
    """Return the one run that a reference names.

    Raises:
        NotFound: `run_unknown`, also for a run behind a wall.
        BadInput: `run_ref_ambiguous` with what it could be.
        Denied: the run may be read, but the permission needs a higher role.
    """
    ref = ref.replace("%2F", "/")  # as it stands in a path
    found = tx.rows(_candidates(scope, ref).where(scope_clause(run, scope)).limit(6))
    if not found:
        raise NotFound("run_unknown", ref=ref)
    newest_is_meant = ref == "-" or ("/" in ref and "#" not in ref)
    spaces = {row.space for row in found}
    if len(found) > 1 and not (newest_is_meant and len(spaces) == 1):
        names = ", ".join(f"{row.id} ({row.space}/{ref_of(row)})" for row in found[:5])
        raise BadInput("run_ref_ambiguous", ref=ref, matches=names)
    scope.require(permission, found[0].space_id, what=ref)
    return found[0]


def _candidates(scope: Scope, ref: str) -> Select[Any]:
    newest = select(run).order_by(run.c.created_us.desc(), run.c.number.desc())
    if ref == "-":
        return newest.where(run.c.owner_id == scope.actor.id).limit(1)
    numbered = _NUMBERED.fullmatch(ref)
    if numbered:
        wanted = newest.where(run.c.project == numbered["project"], run.c.number == int(numbered["number"][:18]))
        return wanted.where(run.c.space == numbered["space"]) if numbered["space"] else wanted
    if "/" in ref:
        project, _, name = ref.partition("/")
        return newest.where(run.c.project == project, run.c.name == name)
    if not _PREFIX.fullmatch(ref):
        raise NotFound("run_unknown", ref=ref)
    return newest.where(or_(_starts(ref), _starts(f"run_{ref}")))


def _starts(prefix: str) -> ColumnElement[bool]:
    return and_(run.c.id >= prefix, run.c.id < prefix + "~")  # ids are lower-case letters, digits and "_"


def own_or_maintain(scope: Scope, row: RunRow) -> None:
    """Raise unless the scope may act on the run: its owner with WRITE, anybody else with MAINTAIN."""
    mine = scope.actor.kind is ActorKind.PERSON and row.owner_id == scope.actor.id
    scope.require(Permission.WRITE if mine else Permission.MAINTAIN, row.space_id, what=ref_of(row))


def list_runs(
    tx: ReadTx,
    scope: Scope,
    *,
    where: Sequence[ColumnElement[bool]] = (),
    order: ColumnElement[Any] | None = None,
    descending: bool = True,
    cursor: str = "",
    limit: int = 50,
) -> tuple[list[RunRow], str, int]:
    """Return a page of rows, the cursor of the next one ("" on the last) and how many there are in all.

    `order` is any expression over the run table; rows without a value come last either way, ties by id.
    """
    key = run.c.created_us if order is None else order
    conditions = [scope_clause(run, scope), *where]
    # Ids and keys first: sorting whole rows would carry specs and environments of all runs through the sorter.
    if isinstance(key, Column) and not any(map(_looks_up, conditions)):
        ident, value = run.c.id, key
        count = select(func.count()).select_from(run).where(*conditions)
        keyed = select(ident, value.label("order_key"), literal(None).label("total")).where(*conditions)
    else:  # found once, to be counted and to be sorted
        sought = select(run.c.id, key.label("order_key")).where(*conditions).cte("sought").prefix_with("MATERIALIZED")
        ident, value = sought.c.id, sought.c.order_key
        count = select(func.count()).select_from(sought)
        keyed = select(ident, value, count.scalar_subquery().label("total"))
    if cursor:
        keyed = keyed.where(_behind(value, ident, _decode_cursor(cursor), descending=descending))
    limit = max(1, min(limit, MAX_PAGE))
    by_value = value.desc() if descending else value.asc()
    by_value = by_value.nulls_last() if getattr(key, "nullable", True) else by_value  # else it only costs time
    found = tx.rows(keyed.order_by(by_value, ident.desc() if descending else ident.asc()).limit(limit + 1))
    counted = found[0].total if found else None
    total = int(tx.scalar(count) or 0) if counted is None else int(counted)
    more = len(found) > limit
    found = found[:limit]
    whole = {row.id: row for row in tx.rows(select(run).where(run.c.id.in_([row.id for row in found])))}
    following = _encode_cursor(found[-1].order_key, found[-1].id) if more else ""
    return [whole[row.id] for row in found], following, total


def _looks_up(condition: ColumnElement[bool]) -> bool:
    """Whether a condition asks another table."""
    return any(part.__visit_name__ == "select" for part in visitors.iterate(condition))


def _behind(
    key: ColumnElement[Any], ident: ColumnElement[str], at: tuple[Any, str], *, descending: bool
) -> ColumnElement[bool]:
    value, last = at
    next_id = ident < last if descending else ident > last
    if value is None:
        return and_(key.is_(None), next_id)
    further = key < value if descending else key > value
    return or_(further, and_(key == value, next_id), key.is_(None))


def _encode_cursor(value: Any, last: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode([value, last])).decode().rstrip("=")


def _decode_cursor(cursor: str) -> tuple[Any, str]:
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        value, last = msgspec.json.decode(raw, type=tuple[int | float | str | None, str])
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        raise BadInput("cursor_wrong", cursor=cursor) from None
    return value, last


# --- changing --------------------------------------------------------------------------------------------------------


def move(tx: Tx, row: RunRow, to: RunState, kind: str, *, data: dict[str, Any] | None = None, **columns: Any) -> RunRow:
    """Move a run by the one table of moves, with its event `kind`; return the new row.

    Raises:
        Conflict: the move is illegal, or somebody else moved the run since `row` was read.
    """
    move_run(RunState(row.state), to)
    values: dict[str, Any] = {"state": to.value, "version": run.c.version + 1, **columns}
    if to in TERMINAL:
        values.setdefault("ended_us", tx.now_us)
        values.setdefault("not_before_us", 0)
    else:
        values.setdefault("ended_us", 0)
    done = tx.execute(update(run).where(run.c.id == row.id, run.c.state == row.state).values(**values))
    if done.rowcount != 1:
        raise Conflict("run_moved", ref=ref_of(row), state=row.state)
    tx.emit(Event(kind, row.id, row.space_id, row.id, values.get("attempt_id", row.attempt_id),
                  {"from": row.state, "to": to.value, **(data or {})}))  # fmt: skip
    return get(tx, row.id)


def to_queue(tx: Tx, row: RunRow, kind: str, *, keep_place: bool = False, **columns: Any) -> RunRow:
    """Put a run into the queue; a preempted one keeps its place."""
    place = row.queued_us if keep_place and row.queued_us else tx.now_us
    return move(tx, row, RunState.QUEUED, kind, queued_us=place, reason="", cause="", wish="", **columns)


def set_columns(tx: Tx, row: RunRow, **columns: Any) -> None:
    """Change columns that are no state; the version grows."""
    tx.execute(update(run).where(run.c.id == row.id).values(version=run.c.version + 1, **columns))


def set_reasons(tx: Tx, reasons: dict[str, Reason]) -> int:
    """Store why runs wait, where that changed. No event: a reason is what the queue looks like just now."""
    changed = _new_reasons(tx, reasons)
    for run_id, text in changed.items():
        waiting = run.c.state.in_([RunState.QUEUED.value, RunState.HELD.value])
        tx.execute(update(run).where(run.c.id == run_id, waiting).values(reason=text))
    return len(changed)


def reasons_differ(tx: ReadTx, reasons: dict[str, Reason]) -> bool:
    """Whether `set_reasons` would change anything; spares an idle queue a write each second."""
    return bool(_new_reasons(tx, reasons))


def _new_reasons(tx: ReadTx, reasons: dict[str, Reason]) -> dict[str, str]:
    if not reasons:
        return {}
    waiting = run.c.state.in_([RunState.QUEUED.value, RunState.HELD.value])
    stored = tx.rows(select(run.c.id, run.c.reason).where(waiting))
    wanted = {run_id: to_json(why) for run_id, why in reasons.items()}
    return {row.id: wanted[row.id] for row in stored if row.id in wanted and wanted[row.id] != row.reason}


def patch(tx: Tx, scope: Scope, ref: str, changes: dict[str, Any]) -> RunRow:
    """Change name, description or tags; `version` is what the person saw.

    Raises:
        BadInput: `run_patch_wrong` with every fault.
        Conflict: `version_stale` with the version that stands.
    """
    row = resolve(tx, scope, ref)
    own_or_maintain(scope, row)
    values = _patch_values(changes)
    version = changes.get("version")
    if version != row.version:
        raise Conflict("version_stale", ref=ref_of(row), given=version, version=row.version)
    if values:
        set_columns(tx, row, **values)
        tx.emit(Event("run.changed", row.id, row.space_id, row.id, data={"fields": sorted(values)}))
    return get(tx, row.id)


def _patch_values(changes: dict[str, Any]) -> dict[str, Any]:
    faults: list[Fault] = []
    values: dict[str, Any] = {}
    for field, value in changes.items():
        if field in ("name", "description") and isinstance(value, str) and len(value) <= 65536:
            values[field] = value
        elif field == "tags" and isinstance(value, list) and all(isinstance(tag, str) for tag in value):
            values[field] = to_json(list(dict.fromkeys(value)))
        elif field == "version" and isinstance(value, int):
            continue
        else:
            faults.append(Fault("run_patch_field", field, None, {"allowed": "name, description, tags, version"}))
    if "version" not in changes:
        faults.append(Fault("run_patch_version", "version"))
    if faults:
        raise BadInput("run_patch_wrong", faults=faults)
    return values


def note_progress(
    tx: Tx, run_id: str, *, step: int, steps_total: int = 0, seconds_left: float | None = None, at_us: int = 0
) -> None:
    """Store how far the run is; an older note than the one that stands is dropped. No event, no new version."""
    at_us = at_us or tx.now_us
    values: dict[str, Any] = {"step": step, "seconds_left": seconds_left, "progress_us": at_us, "contact_us": tx.now_us}
    if steps_total:
        values["steps_total"] = steps_total
    tx.execute(update(run).where(run.c.id == run_id, run.c.progress_us <= at_us).values(**values))


def note_contact(tx: Tx, run_id: str) -> None:
    """Remember that something of the run was heard now. Contact stands beside the state and never moves it."""
    tx.execute(update(run).where(run.c.id == run_id).values(contact_us=tx.now_us))
