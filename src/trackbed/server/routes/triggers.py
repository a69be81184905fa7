"""Triggers, the door for webhooks of forges, and what is known of a commit."""

from typing import Any

from litestar import Request, delete, get, post, put

from trackbed.base.errors import BadInput, NotFound, Unauthenticated
from trackbed.base.ids import Digest
from trackbed.db import Tx
from trackbed.domain.scope import Actor, ActorKind, Permission, Scope
from trackbed.server.app import App
from trackbed.server.flows import fire, trees
from trackbed.wire.triggers import CommitView, DeliveryView, HookReply, PushReport, TriggerRequest, TriggerView
from trackbed.workflow import hooks, triggers

READ = {"permission": Permission.READ}
WRITE = {"permission": Permission.WRITE}
MAINTAIN = {"permission": Permission.MAINTAIN}
HOOK_BYTES = 5 << 20


@get("/api/v1/triggers", opt=READ, name="list_triggers", operation_id="list_triggers")
async def list_all(trackbed_app: App, who: Scope, space: str = "") -> list[TriggerView]:
    """What starts pipelines by itself."""
    found = await trackbed_app.db.aread(lambda tx: triggers.list_triggers(tx, who, space))
    for one in found:
        one.hook_url = _hook_url(trackbed_app, one)
    return found


@put("/api/v1/triggers", opt=MAINTAIN, name="put_trigger", operation_id="put_trigger")
async def set_one(data: TriggerRequest, trackbed_app: App, who: Scope) -> TriggerView:
    """Set a trigger, if it stands as its writer saw it. The secret of its webhook is in the answer, and nowhere else."""
    tree = data.pipeline.tree if data.pipeline else None

    def work(tx: Tx) -> TriggerView:
        if tree is not None and tree.digest and not trees.may_use(tx, who, Digest(tree.digest)):
            raise NotFound("storage_tree_missing", digest=tree.digest)
        return triggers.put(tx, who, data)

    made = await trackbed_app.db.awrite(work, actor=who.actor)
    made.hook_url = _hook_url(trackbed_app, made)
    if made.kind in triggers.FORGES:
        made.secret = fire.secret_of(trackbed_app, made.id)
    return made


@delete("/api/v1/triggers/{name:str}", opt=MAINTAIN, name="drop_trigger", operation_id="drop_trigger")
async def drop(trackbed_app: App, who: Scope, name: str, space: str = "default") -> None:
    """Take a trigger away."""
    await trackbed_app.db.awrite(lambda tx: triggers.drop(tx, who, name, where=space), actor=who.actor)


@get("/api/v1/deliveries", opt=READ, name="list_deliveries", operation_id="list_deliveries")
async def log(
    trackbed_app: App, who: Scope, trigger: str = "", commit: str = "", space: str = "", limit: int = 100
) -> list[DeliveryView]:
    """What came in and what was made of it, the newest first."""
    return await trackbed_app.db.aread(
        lambda tx: triggers.deliveries(tx, who, where=space, name=trigger, commit=commit, limit=limit)
    )


@post("/api/v1/triggers/{name:str}/pushed", opt=WRITE, name="pushed", operation_id="pushed")
async def pushed(data: PushReport, trackbed_app: App, who: Scope, name: str, space: str = "default") -> DeliveryView:
    """A git hook tells of a push, with the code of the commit."""

    def work(tx: Tx) -> DeliveryView:
        row = triggers.find(tx, who, name, where=space, permission=Permission.WRITE)
        if row.kind != "git":
            raise BadInput("trigger_not_git", name=name, kind=row.kind)
        if not trees.may_use(tx, who, Digest(data.tree.digest)):
            raise NotFound("storage_tree_missing", digest=data.tree.digest)
        tx.after_commit(lambda: trackbed_app.wake.set("triggers"))
        return triggers.receive_tree(tx, row, data)

    return await trackbed_app.db.awrite(work, actor=who.actor)


@post(
    "/api/v1/hooks/{trigger:str}", opt={"permission": Permission.PUBLIC}, status_code=200,
    request_max_body_size=HOOK_BYTES, name="hook", operation_id="hook",
)  # fmt: skip
async def hook(request: Request[Any, Any, Any], trackbed_app: App, trigger: str) -> HookReply:
    """A forge tells of a push. Anybody may knock; only who knows the trigger's secret is heard, and each sending once."""
    body = await request.body()
    row = await trackbed_app.db.aread(lambda tx: triggers.by_id(tx, trigger[:100]))
    headers = {name.lower(): value for name, value in request.headers.items()}
    secret = fire.secret_of(trackbed_app, trigger[:100])  # for an unknown one too: both take as long
    if not hooks.is_genuine(row.kind if row else "github", headers, body, secret) or row is None:
        raise Unauthenticated("hook_not_genuine")
    push = hooks.push_of(row.kind, headers, body)
    if isinstance(push, str):
        return HookReply(ignored=push)
    if not hooks.is_timely(push, trackbed_app.clock.now_us() / 1e6):
        raise BadInput("hook_too_old", limit_s=int(hooks.TOO_OLD_S))
    if not push.commit or not triggers.wants(row, push.branch):
        return HookReply(ignored="branch_deleted" if not push.commit else "other_branch")

    def work(tx: Tx) -> tuple[DeliveryView, bool]:
        tx.after_commit(lambda: trackbed_app.wake.set("triggers"))
        return triggers.receive(tx, row, push, body)

    actor = Actor(ActorKind.SYSTEM, "hook", f"{row.kind}:{push.by}"[:100])
    found, new = await trackbed_app.db.awrite(work, actor=actor)
    return HookReply(delivery=found.id, state=found.state, ignored="" if new else "replayed")


@get("/api/v1/commits/{commit:str}", opt=READ, name="show_commit", operation_id="show_commit")
async def show_commit(trackbed_app: App, who: Scope, commit: str) -> CommitView:
    """What was started for a commit, runs of its code, and its reviews."""
    return await trackbed_app.db.aread(lambda tx: fire.of_commit(tx, who, commit))


def _hook_url(app: App, one: TriggerView) -> str:
    return f"{app.url}/api/v1/hooks/{one.id}" if one.kind in triggers.FORGES else ""


routes: list[Any] = [list_all, set_one, drop, log, pushed, hook, show_commit]
