"""Triggers: which push or dataset version starts which pipeline, each sending once."""

from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

import msgspec
from blake3 import blake3
from sqlalchemy import Row, select, update

from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput, Conflict, Fault, NotFound
from trackbed.db import ReadTx, Tx, scope_clause, upsert
from trackbed.domain.events import Event
from trackbed.domain.names import name_of
from trackbed.domain.scope import Permission, Scope
from trackbed.wire.runs import SubmitRequest
from trackbed.wire.triggers import DeliveryView, PushReport, TriggerRequest, TriggerView
from trackbed.workflow.hooks import Push
from trackbed.workflow.sql import space
from trackbed.workflow.triggers_sql import cursor, delivery, trigger

FORGES = ("github", "gitlab", "gitea")
TOKEN_ENV = "TRACKBED_FORGE_TOKEN"
TRIES = 5
_TELL_US = 3600 * 1_000_000  # how long a forge is told of a failure


def put(tx: Tx, scope: Scope, asked: TriggerRequest) -> TriggerView:
    """Set a trigger, if it stands as its writer saw it. It starts runs in the name of who sets it.

    Raises:
        BadInput: `trigger_wrong` with every fault.
        Conflict: `trigger_moved`, with the version that stands.
        NotFound, Denied: the space, or the right to maintain it, is missing.
    """
    space_id = _space_id(tx, scope, asked.space, Permission.MAINTAIN)
    if faults := list(_faults(asked)):
        raise BadInput("trigger_wrong", count=len(faults), faults=faults)
    tx.one(select(space.c.id).where(space.c.id == space_id).with_for_update())
    row = tx.one(select(trigger).where(trigger.c.space_id == space_id, trigger.c.name == asked.name))
    stands = row.version if row is not None else 0
    if stands != asked.version:
        raise Conflict(
            "trigger_moved", name=asked.name, given=asked.version, version=stands, owner=row.owner if row else "-"
        )
    values: dict[str, Any] = {
        "kind": asked.kind, "branch": asked.branch or "*", "dataset": asked.dataset, "remote": asked.remote,
        "status_url": asked.status_url.rstrip("/"), "token_env": asked.token_env,
        "pipeline": msgspec.json.encode(asked.pipeline).decode() if asked.pipeline else "",
        "owner_id": tx.actor.id, "owner": tx.actor.name or tx.actor.id, "version": stands + 1,
    }  # fmt: skip
    made = row.id if row is not None else new_id("trg")
    if row is None:
        tx.execute(trigger.insert().values(id=made, space_id=space_id, name=asked.name, created_us=tx.now_us, **values))
    else:
        tx.execute(update(trigger).where(trigger.c.id == made).values(**values))
    tx.emit(
        Event(
            "trigger.set",
            made,
            space_id=space_id,
            data={"name": asked.name, "kind": asked.kind, "branch": asked.branch},
        )
    )
    return next(one for one in list_triggers(tx, scope, asked.space) if one.id == made)


def _faults(asked: TriggerRequest) -> Any:
    if name_of(asked.name) is None:
        yield Fault("trigger_name", "name", None, {"name": asked.name[:100]})
    for field in ("remote", "status_url"):
        url = getattr(asked, field)
        parts = urlsplit(url)
        if url and (parts.scheme not in ("https", "http") or not parts.hostname or parts.username or parts.password):
            yield Fault("trigger_url", field, None, {"url": url[:200]})
    if asked.kind in FORGES and not asked.remote:
        yield Fault("trigger_remote_missing", "remote", None, {"kind": asked.kind})
    if asked.kind == "dataset" and not asked.dataset:
        yield Fault("trigger_dataset_missing", "dataset")
    if asked.kind == "dataset" and asked.pipeline is None:
        yield Fault("trigger_pipeline_missing", "pipeline")
    if asked.token_env and not asked.token_env.startswith(TOKEN_ENV):
        yield Fault("trigger_token_env", "token_env", None, {"given": asked.token_env[:100], "start": TOKEN_ENV})


def drop(tx: Tx, scope: Scope, name: str, *, where: str = "default") -> None:
    """Take a trigger away; what it started stays on the record."""
    row = find(tx, scope, name, where=where, permission=Permission.MAINTAIN)
    tx.execute(trigger.delete().where(trigger.c.id == row.id))
    tx.emit(Event("trigger.dropped", row.id, space_id=row.space_id, data={"name": name}))


def find(
    tx: ReadTx, scope: Scope, name: str, *, where: str = "default", permission: Permission = Permission.READ
) -> Row[Any]:
    """Return the row of a trigger.

    Raises:
        NotFound: `trigger_unknown`.
    """
    space_id = _space_id(tx, scope, where, permission)
    row = tx.one(select(trigger).where(trigger.c.space_id == space_id, trigger.c.name == name))
    if row is None:
        raise NotFound("trigger_unknown", name=name, space=where)
    return row


def by_id(tx: ReadTx, trigger_id: str) -> Row[Any] | None:
    return tx.one(select(trigger).where(trigger.c.id == trigger_id))


def list_triggers(tx: ReadTx, scope: Scope, where: str = "") -> list[TriggerView]:
    stmt = select(trigger, space.c.name.label("space")).join(space, space.c.id == trigger.c.space_id)
    stmt = stmt.where(scope_clause(trigger, scope))
    if where:
        stmt = stmt.where(trigger.c.space_id == _space_id(tx, scope, where))
    return [
        TriggerView(
            id=row.id, name=row.name, kind=row.kind, space=row.space, branch=row.branch, dataset=row.dataset,
            remote=row.remote, status_url=row.status_url, token_env=row.token_env, registered=bool(row.pipeline),
            owner=row.owner, version=row.version, created_us=row.created_us,
        )
        for row in tx.rows(stmt.order_by(trigger.c.name))
    ]  # fmt: skip


def pipeline_of(row: Row[Any]) -> SubmitRequest | None:
    return msgspec.json.decode(row.pipeline, type=SubmitRequest) if row.pipeline else None


def receive(tx: Tx, row: Row[Any], push: Push, body: bytes) -> tuple[DeliveryView, bool]:
    """Note a genuine push; return it, and whether it is new. The same sending, or the same body, is the one that was."""
    digest = blake3(body).hexdigest()
    mine = select(delivery).where(delivery.c.trigger_id == row.id)
    sent = push.delivery or digest
    known = tx.one(mine.where((delivery.c.body == digest) | (delivery.c.sent_id == sent)).limit(1))
    if known is not None:
        tx.emit(Event("trigger.replayed", row.id, space_id=row.space_id, data={"name": row.name, "delivery": known.id}))
        return _view(known, row.name), False
    return _note(tx, row, sent, digest, commit=push.commit, branch=push.branch, by=push.by), True


def receive_version(tx: Tx, row: Row[Any], dataset: str, number: int) -> DeliveryView:
    """Note a new version of a dataset, once."""
    ref = f"{dataset}@{number}"
    known = tx.one(select(delivery).where(delivery.c.trigger_id == row.id, delivery.c.sent_id == ref))
    return _view(known, row.name) if known is not None else _note(tx, row, ref, ref, dataset=ref)


def receive_tree(tx: Tx, row: Row[Any], report: PushReport) -> DeliveryView:
    """Note a push that a git hook tells of, with its code. A commit of a branch starts the pipeline once."""
    sent = f"{report.branch}@{report.commit}"
    known = tx.one(select(delivery).where(delivery.c.trigger_id == row.id, delivery.c.sent_id == sent))
    if known is not None:
        return _view(known, row.name)
    made = _note(tx, row, sent, sent, commit=report.commit, branch=report.branch, by=tx.actor.name)
    tree = msgspec.json.encode(report.tree).decode()
    tx.execute(update(delivery).where(delivery.c.id == made.id).values(tree=tree))
    return made


def _note(
    tx: Tx, row: Row[Any], sent: str, body: str, *, commit: str = "", branch: str = "", by: str = "", dataset: str = ""
) -> DeliveryView:
    made = new_id("dlv")
    tx.execute(delivery.insert().values(
        id=made, trigger_id=row.id, space_id=row.space_id, sent_id=sent, body=body, state="waiting", commit_id=commit,
        branch=branch, by_whom=by, dataset=dataset, tree="", run_id="", result="", told="", tries=0, created_us=tx.now_us,
        updated_us=tx.now_us,
    ))  # fmt: skip
    data = {"name": row.name, "commit": commit, "branch": branch, "dataset": dataset, "by": by}
    tx.emit(Event("trigger.fired", row.id, space_id=row.space_id, data=data))
    return by_delivery(tx, made)


def settle(
    tx: Tx,
    delivery_id: str,
    *,
    state: str = "",
    run_id: str = "",
    result: str = "",
    told: str = "",
    tries: int | None = None,
) -> None:
    """Move a delivery on; the facts that are given replace those that stand."""
    values: dict[str, Any] = {"updated_us": tx.now_us}
    given = {"state": state, "run_id": run_id, "result": result[:2000], "told": told[:500]}
    values |= {name: value for name, value in given.items() if value}
    if tries is not None:
        values["tries"] = tries
    tx.execute(update(delivery).where(delivery.c.id == delivery_id).values(**values))
    row = tx.one(select(delivery).where(delivery.c.id == delivery_id))
    if row is not None and state in ("failed", "done", "started"):
        data = {"commit": row.commit_id, "dataset": row.dataset, "result": row.result, "state": state}
        tx.emit(Event("trigger.result", row.trigger_id, row.space_id, row.run_id, data=data))


def in_state(tx: ReadTx, *states: str, limit: int = 50) -> list[Row[Any]]:
    """Deliveries to be moved on, the oldest first. For the system's own loop."""
    stmt = select(delivery).where(delivery.c.state.in_(states)).order_by(delivery.c.created_us)
    return tx.rows(stmt.limit(limit))


def untold(tx: ReadTx) -> list[Row[Any]]:
    """Deliveries that failed a short while ago, and whose forge does not know yet."""
    recent = tx.now_us - _TELL_US
    stmt = select(delivery).where(
        delivery.c.state == "failed", delivery.c.told != "failure", delivery.c.tries < TRIES, delivery.c.commit_id != "",
        delivery.c.created_us > recent,
    )  # fmt: skip
    return tx.rows(stmt.order_by(delivery.c.created_us.desc()).limit(50))


def by_delivery(tx: ReadTx, delivery_id: str) -> DeliveryView:
    row = tx.one(select(delivery).where(delivery.c.id == delivery_id))
    assert row is not None
    named = by_id(tx, row.trigger_id)
    return _view(row, named.name if named is not None else "-")


def deliveries(
    tx: ReadTx, scope: Scope, *, where: str = "", name: str = "", commit: str = "", limit: int = 100
) -> list[DeliveryView]:
    """Return what came in, the newest first: of a trigger, or of a commit (first digits are enough)."""
    stmt = select(delivery).where(scope_clause(delivery, scope))
    if name:
        stmt = stmt.where(delivery.c.trigger_id == find(tx, scope, name, where=where or "default").id)
    if commit:
        stmt = stmt.where(delivery.c.commit_id.startswith(commit, autoescape=True))
    rows = tx.rows(stmt.order_by(delivery.c.created_us.desc()).limit(max(1, min(limit, 1000))))
    names = {row.id: row.name for row in tx.rows(select(trigger.c.id, trigger.c.name))}
    return [_view(row, names.get(row.trigger_id, "-")) for row in rows]


def for_dataset(tx: ReadTx, space_id: str, dataset: str) -> list[Row[Any]]:
    rows = tx.rows(select(trigger).where(trigger.c.space_id == space_id, trigger.c.kind == "dataset"))
    return [row for row in rows if fnmatchcase(dataset, row.dataset)]


def wants(row: Row[Any], branch: str) -> bool:
    return fnmatchcase(branch, row.branch)


def position(tx: ReadTx) -> int | None:
    return tx.scalar(select(cursor.c.position).where(cursor.c.name == "datasets"))


def move_to(tx: Tx, journal_position: int) -> None:
    values = {"name": "datasets", "position": journal_position}
    tx.execute(upsert(cursor, values, key=["name"], update=["position"]))


def _view(row: Row[Any], name: str) -> DeliveryView:
    return DeliveryView(
        id=row.id, trigger=name, state=row.state, commit=row.commit_id, branch=row.branch, by=row.by_whom,
        dataset=row.dataset, run_id=row.run_id, result=row.result, told=row.told, created_us=row.created_us,
    )  # fmt: skip


def _space_id(tx: ReadTx, scope: Scope, name: str, permission: Permission = Permission.READ) -> str:
    found = tx.scalar(select(space.c.id).where(space.c.name == (name or "default")))
    what = f"space {name or 'default'}"
    if found is None:
        raise NotFound("not_found", what=what)
    scope.require(permission, found, what=what)
    return found
