"""A record from a bundle becomes a run here: with a number of its own, marked as foreign, ended for good."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from sqlalchemy import insert, select, update

from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput
from trackbed.db import Tx
from trackbed.domain.events import Event
from trackbed.domain.scope import Scope
from trackbed.domain.states import TERMINAL, AttemptState, Cause, RunState
from trackbed.tracking import artifacts, facts, runs
from trackbed.tracking.export_tables import origin
from trackbed.tracking.facts_values import unpack
from trackbed.tracking.ingest import Prepared, ingest
from trackbed.tracking.ingest_summary import Known
from trackbed.tracking.runs_tables import attempt, run
from trackbed.wire.bundle import AttemptRecord, RunRecord
from trackbed.wire.runs import EnvironmentRecord, Reason, TreeFacts
from trackbed.wire.spec import Spec

T = TypeVar("T", bound=msgspec.Struct)
LABEL = "imported"  # a tag of every foreign run: the runs table can be asked for it


@dataclass(frozen=True)
class Place:
    """Where the run is to stand: a project of ours, and the next number in it."""

    space_id: str
    space: str
    project_id: str
    project: str
    number: int


def read_record(data: bytes) -> RunRecord:
    """Return the record in `run.json`.

    Raises:
        BadInput: `bundle_record_bad`.
    """
    try:
        record = msgspec.json.decode(data, type=RunRecord)
        RunState(record.state)
        [Cause(one.cause) for one in record.attempts if one.cause]
        for text in record.params.values():
            unpack(text)
        _spec(record)
    except (msgspec.MsgspecError, ValueError, RecursionError) as broken:
        raise BadInput("bundle_record_bad", what=str(broken)[:300]) from None
    return record


def find(tx: Tx, space_id: str, installation: str, record: RunRecord, digest: str) -> tuple[runs.RunRow, bool] | None:
    """Return the run that this very record became before, and whether all of it came in."""
    stmt = select(origin).where(
        origin.c.space_id == space_id, origin.c.installation == installation, origin.c.original_id == record.id,
        origin.c.record == digest,
    )  # fmt: skip
    known = tx.one(stmt)
    return None if known is None else (runs.get(tx, known.run_id), bool(known.whole))


def begin(
    tx: Tx, scope: Scope, record: RunRecord, *, place: Place, installation: str, digest: str, bundle: str
) -> runs.RunRow:
    """Make the run, without its points, lines and files. Until `end` it is running, and nobody takes it for whole."""
    spec = msgspec.structs.replace(_spec(record), project=place.project, space=place.space)
    row = runs.create(
        tx,
        runs.NewRun(
            id=new_id("run"), space_id=place.space_id, project_id=place.project_id, number=place.number,
            owner_id=scope.actor.id, owner=scope.actor.name, spec=spec, tree=_struct(record.tree_json, TreeFacts),
            environment=_struct(record.environment_json, EnvironmentRecord),
            nondeterminism=tuple(runs.from_json(record.nondeterminism_json, [])), outside=True,
            created_us=min(record.created_us, tx.now_us),
        ),
    )  # fmt: skip
    tx.execute(
        insert(origin).values(
            run_id=row.id, space_id=row.space_id, installation=installation, original_id=record.id,
            original_ref=record.ref, owner=record.owner, record=digest, bundle=bundle, imported_us=tx.now_us,
            imported_by=scope.actor.name,
        )
    )  # fmt: skip
    _attempts(tx, row, record.attempts)
    facts.add_params(tx, row.id, {name: unpack(text) for name, text in record.params.items()})
    for key, meaning in record.definitions.items():
        facts.define(tx, row.id, {**meaning, "key": key})
    return runs.get(tx, row.id)


def keep(tx: Tx, row: runs.RunRow, prepared: Prepared, sealed: Known | None) -> list[str]:
    """Keep a part of the points or lines; said twice it changes nothing. Returns the codes of what was refused."""
    return [one.code for one in ingest(tx, row, prepared, sealed=sealed).receipt.rejected]


def end(tx: Tx, row: runs.RunRow, record: RunRecord, *, files: Sequence[artifacts.Kept] | None) -> runs.RunRow:
    """Say how it ended, with the times of its own; everything of it is in. `files`: None where the bundle left them out."""
    by_attempt: dict[int, list[artifacts.Kept]] = {}
    for said, kept in zip(record.files, files or [], strict=False):
        by_attempt.setdefault(said.attempt, []).append(kept)
    for number, some in by_attempt.items():
        artifacts.record(tx, row, number, some)
    state, cause, reason = RunState(record.state), record.cause, record.reason_json
    if state not in TERMINAL:  # it was still going on over there: what is here goes on no more
        state, cause = RunState.STOPPED, Cause.STOPPED.value
        reason = runs.to_json(Reason(code="imported_unfinished", params={"state": record.state}))
    last = max((one.number for one in record.attempts), default=1)
    tx.execute(
        update(run).where(run.c.id == row.id).values(
            state=state.value, cause=cause, reason=reason, name=record.name, description=record.description,
            tags=runs.to_json(list(dict.fromkeys([*record.tags, LABEL]))), summary=record.summary_json,
            queued_us=record.queued_us, started_us=record.started_us, ended_us=record.ended_us or tx.now_us,
            contact_us=tx.now_us, card_seconds=record.card_seconds, step=record.step, attempt=last, epoch=last,
            outside=1, version=run.c.version + 1,
        )
    )  # fmt: skip
    tx.execute(update(origin).where(origin.c.run_id == row.id).values(whole=1))
    ended = runs.get(tx, row.id)
    data = {"ref": runs.ref_of(ended), "original": record.id, "original_ref": record.ref, "owner": record.owner}
    tx.emit(Event("run.imported", row.id, row.space_id, row.id, data=data))
    return ended


def _attempts(tx: Tx, row: runs.RunRow, records: Sequence[AttemptRecord]) -> None:
    for one in records or [AttemptRecord(number=1, created_us=row.created_us)]:
        tx.execute(
            insert(attempt).values(
                id=new_id("att"), run_id=row.id, space_id=row.space_id, number=one.number, epoch=one.number,
                state=AttemptState.EXITED.value, cause=one.cause, stage=one.stage, evidence=one.evidence_json,
                placement=one.placement_json, cards=one.cards, node=one.node, created_us=one.created_us,
                started_us=one.started_us, ended_us=one.ended_us, card_seconds=one.card_seconds,
                resumed_from_step=one.resumed_from_step, last_step=one.last_step,
            )
        )  # fmt: skip


def _spec(record: RunRecord) -> Spec:
    spec = msgspec.json.decode(record.spec_json, type=Spec)
    return msgspec.structs.replace(spec, name=record.name, description=record.description, tags=record.tags)


def _struct(text: str, kind: type[T]) -> T | None:
    return msgspec.json.decode(text, type=kind) if text else None
