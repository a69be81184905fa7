"""fire: from a delivery to a run in the name of the trigger's owner, and back: the result on the commit and at the forge."""

import asyncio
import base64
import hashlib
import hmac
import os
import secrets
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Row, select

from trackbed import access
from trackbed.base.errors import BadInput, Denied, NotFound, TrackbedError
from trackbed.base.ids import Digest, FileDigest
from trackbed.db import ReadTx, scope_clause
from trackbed.domain.scope import SYSTEM, Scope
from trackbed.domain.states import TERMINAL, RunState
from trackbed.server import outbound
from trackbed.server.app import App
from trackbed.server.flows import submit as submitting
from trackbed.server.flows import trees
from trackbed.sources import reviews
from trackbed.sources.capture import capture
from trackbed.sources.git import plain_remote
from trackbed.tracking import runs, runs_views
from trackbed.tracking.runs_tables import run as run_table
from trackbed.wire.runs import SubmitRequest, TreeFacts
from trackbed.wire.triggers import CommitView, DeliveryView
from trackbed.workflow import spec as specs
from trackbed.workflow import triggers

PIPELINE = b".trackbed/pipeline.yaml"
FETCH_S = 300.0
_MOST_PIPELINE_BYTES = 1 << 20
_NO_CONFIG = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def secret_of(app: App, trigger_id: str) -> str:
    """The shared secret of a webhook: derived from a key of the home folder, in no database and in no snapshot."""
    place = app.home / "hooks.key"
    try:
        fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(fd, "wb") as file:
            file.write(secrets.token_bytes(32))
    return hmac.new(place.read_bytes(), f"trackbed hook 1 {trigger_id}".encode(), hashlib.sha256).hexdigest()


def fire(app: App, row: Row[Any]) -> None:
    """Start what a delivery asks for. Whatever hinders it is the delivery's result. Blocks: fetches code."""
    try:
        run_id = _fire(app, row)
    except TrackbedError as fault:
        why = fault.text("en")
        app.db.write(lambda tx: triggers.settle(tx, row.id, state="failed", result=why), actor=SYSTEM.actor)
    else:
        app.db.write(lambda tx: triggers.settle(tx, row.id, state="started", run_id=run_id), actor=SYSTEM.actor)


def _fire(app: App, row: Row[Any]) -> str:
    rule, scope = app.db.read(lambda tx: _rule(tx, row))
    request = triggers.pipeline_of(rule)
    if rule.kind != "dataset":
        tree = msgspec.json.decode(row.tree, type=TreeFacts) if row.tree else _fetched(app, scope, rule, row)
        request = _with_tree(app, request, tree)
    if request is None:
        raise NotFound("trigger_pipeline_missing", name=rule.name)
    space = app.db.read(lambda tx: access.space_names(tx, SYSTEM))[rule.space_id]
    tags = [*dict.fromkeys([*request.spec.tags, f"trigger:{rule.name}"])]
    spec = msgspec.structs.replace(request.spec, space=space, tags=tags)
    values = {**request.values, "tags": tags, "space": space} if request.values else {}
    request = msgspec.structs.replace(request, spec=spec, values=values, dry_run=False)
    return asyncio.run(submitting.submit(app, scope, request)).run_id


def _rule(tx: ReadTx, row: Row[Any]) -> tuple[Row[Any], Scope]:
    rule = triggers.by_id(tx, row.trigger_id)
    if rule is None:
        raise NotFound("trigger_unknown", name=row.trigger_id)
    scope = access.scope_of(tx, rule.owner_id)
    if scope is None:
        raise Denied("trigger_owner_gone", name=rule.name, owner=rule.owner)
    return rule, scope


def _with_tree(app: App, registered: SubmitRequest | None, tree: TreeFacts) -> SubmitRequest:
    """The registered spec, else that of the commit, on the code of the commit."""
    if registered is not None:
        return msgspec.structs.replace(registered, tree=tree)
    entries = app.store.read_listing(Digest(tree.digest))
    entry = next((one for one in entries if one.path == PIPELINE and one.kind == "f"), None)
    if entry is None or entry.size > _MOST_PIPELINE_BYTES:
        raise NotFound("trigger_no_pipeline", path=PIPELINE.decode(), commit=tree.commit[:12])
    with app.store.open_range(FileDigest(entry.digest)) as reader:
        text = reader.read()
    loaded = specs.read(text.decode("utf-8", "replace") + "\n")
    if loaded.faults:
        raise specs.wrong(loaded.faults)
    return SubmitRequest(spec=loaded.spec, tree=tree, values=loaded.values)


def _fetched(app: App, scope: Scope, rule: Row[Any], row: Row[Any]) -> TreeFacts:
    """Bring a commit from its forge into the store, from the address that was judged and no other."""
    with tempfile.TemporaryDirectory(prefix="trackbed-fetch-") as name:
        folder = Path(name, "code")
        folder.mkdir()
        _fetch(rule, row.commit_id, row.branch, folder)
        found = capture(folder)
        facts = msgspec.structs.replace(
            found.facts, commit=row.commit_id, branch=row.branch, remote=plain_remote(rule.remote)
        )
        store = app.store_of(rule.space_id)
        for digest, path in found.files.items():
            store.put_blob(path, expect=digest)
        store.put_listing(found.listing)
    app.db.write(lambda tx: trees.hold(tx, scope, [facts.digest, *found.files]), actor=scope.actor)
    return facts


def _fetch(rule: Row[Any], commit: str, branch: str, folder: Path) -> None:
    place = outbound.judge(rule.remote)
    settings = [
        f"http.curloptResolve={place.host}:{place.port}:{place.address}", "http.followRedirects=false", "http.proxy=",
        "protocol.allow=never", f"protocol.{place.scheme}.allow=always", "core.hooksPath=/dev/null", "gc.auto=0",
        "core.symlinks=true", "core.autocrlf=false",
    ]  # fmt: skip
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "TRACKBED"))}
    env = {**env, **_NO_CONFIG, **_credentials(rule)}

    def git(*args: str, check: bool = True) -> bool:
        command = ["git", "-C", str(folder), *(part for one in settings for part in ("-c", one)), *args]
        try:
            done = subprocess.run(command, env=env, capture_output=True, check=False, timeout=FETCH_S)
        except subprocess.TimeoutExpired as fault:
            raise BadInput(
                "sources_git_refused", folder=plain_remote(rule.remote), reason="it took too long"
            ) from fault
        if check and done.returncode:
            why = done.stderr.decode("utf-8", "replace").strip()[-500:]
            raise BadInput("sources_git_refused", folder=plain_remote(rule.remote), reason=why)
        return not done.returncode

    git("init", "-q")
    if not git("fetch", "-q", "--no-tags", "--depth=1", rule.remote, commit, check=False):
        git("fetch", "-q", "--no-tags", rule.remote, f"refs/heads/{branch}")
    git("checkout", "-q", "--force", "--detach", commit)


def _credentials(rule: Row[Any]) -> dict[str, str]:
    """The forge's token, given to git by the environment: arguments of a process can be read by others."""
    token = _token(rule)
    if not token:
        return {}
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {basic}",
    }  # fmt: skip


def _token(rule: Row[Any]) -> str:
    return os.environ.get(rule.token_env, "") if rule.token_env.startswith(triggers.TOKEN_ENV) else ""


def look(app: App, row: Row[Any]) -> None:
    """Tell the forge how far a started delivery is; close it when its run has ended and the forge was told."""
    rule, state = app.db.read(lambda tx: (triggers.by_id(tx, row.trigger_id), _state(tx, row)))
    ended = not row.run_id or state in {one.value for one in TERMINAL}
    word = _word(state, ended=ended, failed=row.state == "failed")
    told = row.told
    if rule is not None and rule.status_url and row.commit_id and told != word and row.tries < triggers.TRIES:
        told = _tell(app, rule, row, word)
        tries = row.tries + (told != word)
        app.db.write(lambda tx: triggers.settle(tx, row.id, told=told, tries=tries), actor=SYSTEM.actor)
        if told != word and tries < triggers.TRIES:
            return
    if ended and row.state == "started":
        app.db.write(lambda tx: triggers.settle(tx, row.id, state="done", result=state), actor=SYSTEM.actor)


def _state(tx: ReadTx, row: Row[Any]) -> str:
    return str(runs.get(tx, row.run_id).state) if row.run_id else "failed"


def _word(state: str, *, ended: bool, failed: bool) -> str:
    if failed or (ended and state != RunState.FINISHED.value):
        return "failure"
    return "success" if ended else "pending"


def _tell(app: App, rule: Row[Any], row: Row[Any], word: str) -> str:
    """Return the word that the forge took, or why it did not."""
    url, body, headers = status_of(app, rule, row, word)
    try:
        status = outbound.post(url, msgspec.json.encode(body), headers)
    except TrackbedError as fault:
        return fault.text("en")
    return word if 200 <= status < 300 else f"HTTP {status}"


def status_of(app: App, rule: Row[Any], row: Row[Any], word: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Address, body and headers of a commit status, as each forge wants it."""
    repository = _repository(rule.remote)
    target = f"{app.url}/runs/{row.run_id}" if row.run_id else app.url
    token = _token(rule)
    body = {"context": f"trackbed/{rule.name}", "target_url": target, "description": f"{rule.name}: {word}"}
    if rule.kind == "gitlab":
        project = repository.replace("/", "%2F")
        states = {"pending": "running", "success": "success", "failure": "failed"}
        named = {
            "state": states[word],
            "name": body["context"],
            "target_url": target,
            "description": body["description"],
        }
        headers = {"PRIVATE-TOKEN": token} if token else {}
        return f"{rule.status_url}/projects/{project}/statuses/{row.commit_id}", named, headers
    scheme = "token" if rule.kind == "gitea" else "Bearer"
    headers = {"Authorization": f"{scheme} {token}"} if token else {}
    return f"{rule.status_url}/repos/{repository}/statuses/{row.commit_id}", {"state": word, **body}, headers


def _repository(remote: str) -> str:
    """`owner/name` of an address."""
    path = remote.partition("://")[2].partition("/")[2]
    return path.strip("/").removesuffix(".git")


def of_commit(tx: ReadTx, scope: Scope, commit: str) -> CommitView:
    """Everything that is known of a commit.

    Raises:
        BadInput: `commit_bad`.
    """
    if not 7 <= len(commit) <= 64 or commit.strip("0123456789abcdef"):
        raise BadInput("commit_bad", commit=commit[:80])
    stmt = select(run_table).where(
        run_table.c.tree.contains(f'"commit":"{commit}', autoescape=True), scope_clause(run_table, scope)
    )
    rows = tx.rows(stmt.order_by(run_table.c.created_us.desc()).limit(100))
    found = triggers.deliveries(tx, scope, commit=commit)
    for one in found:
        _name_run(tx, one)
    return CommitView(
        commit=commit, deliveries=found, runs=[runs_views.view(tx, row) for row in rows],
        reviews=reviews.list_reviews(tx, scope, commit=commit),
    )  # fmt: skip


def _name_run(tx: ReadTx, one: DeliveryView) -> None:
    if one.run_id:
        row = runs.get(tx, one.run_id)
        one.run, one.result = runs.ref_of(row), one.result or str(row.state)
