"""`trackbed trigger …`: what starts a pipeline by itself, and what came of it."""

import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.cli import output
from trackbed.cli.context import client, current, say
from trackbed.cli.options import Space, group

if TYPE_CHECKING:
    from trackbed.client.api import Client
    from trackbed.wire.runs import SubmitRequest
    from trackbed.wire.triggers import DeliveryView

app = group()
Name = Annotated[str, typer.Argument(metavar="NAME", help=say("cli.opt.trigger"), show_default=False)]
Branch = Annotated[str, typer.Option("--branch", metavar="PATTERN", help=say("cli.opt.trigger_branch"))]


@app.command("set", help=say("cli.about.trigger.set"))
def set_trigger(
    name: Name,
    kind: Annotated[str, typer.Option("--kind", metavar="KIND", help=say("cli.opt.trigger_kind"))] = "git",
    branch: Branch = "*",
    dataset: Annotated[str, typer.Option("--dataset", metavar="PATTERN", help=say("cli.opt.trigger_dataset"))] = "",
    spec: Annotated[
        Path | None, typer.Option("--spec", metavar="FILE", help=say("cli.opt.trigger_spec"), show_default=False)
    ] = None,
    remote: Annotated[str, typer.Option("--remote", metavar="URL", help=say("cli.opt.trigger_remote"))] = "",
    status: Annotated[str, typer.Option("--status", metavar="URL", help=say("cli.opt.trigger_status"))] = "",
    token_env: Annotated[str, typer.Option("--token-env", metavar="NAME", help=say("cli.opt.trigger_token"))] = "",
    space: Space = "default",
) -> None:
    from trackbed.wire.triggers import TriggerRequest

    with client() as api:
        seen = next((one.version for one in api.triggers.all(space) if one.name == name), 0)
        made = api.triggers.put(TriggerRequest(
            name=name, kind=kind, space=space, branch=branch, dataset=dataset, remote=remote, status_url=status,  # type: ignore[arg-type] - the server judges it
            token_env=token_env, pipeline=_pipeline(api, spec), version=seen,
        ))  # fmt: skip
    if output.emit_json(made):
        return
    output.line(say("cli.trigger_set", name=made.name, kind=made.kind))
    if made.hook_url:
        output.note(say("cli.trigger_hook", url=made.hook_url))
        output.line(made.secret)
    elif made.kind == "git":
        output.note(say("cli.trigger_git", name=made.name))


def _pipeline(api: "Client", spec: Path | None) -> "SubmitRequest | None":
    if spec is None:
        return None
    from trackbed.client.submit import prepare

    return prepare(spec).register(api.connection)


@app.command("list", help=say("cli.about.trigger.list"))
def list_triggers() -> None:
    with client() as api:
        found = api.triggers.all()
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{name}") for name in ("trigger", "kind", "pattern", "space", "person")]
    rows = [[one.name, one.kind, one.dataset or one.branch, one.space, one.owner] for one in found]
    output.table(head, rows, empty=say("cli.no_triggers"))


@app.command("drop", help=say("cli.about.trigger.drop"))
def drop(name: Name, space: Space = "default") -> None:
    with client() as api:
        api.triggers.drop(name, space)
    if not output.emit_json({"name": name}):
        output.line(say("cli.trigger_dropped", name=name))


@app.command("log", help=say("cli.about.trigger.log"))
def log(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help=say("cli.opt.trigger"), show_default=False)] = "",
    commit: Annotated[str, typer.Option("--commit", metavar="COMMIT", help=say("cli.opt.trigger_commit"))] = "",
) -> None:
    with client() as api:
        found = api.triggers.log(name, commit=commit)
    if not output.emit_json(found):
        _table(found)


@app.command("commit", help=say("cli.about.trigger.commit"))
def commit(
    commit: Annotated[str, typer.Argument(metavar="COMMIT", help=say("cli.opt.trigger_commit"), show_default=False)],
) -> None:
    with client() as api:
        found = api.triggers.commit(commit)
    if output.emit_json(found):
        return
    _table(found.deliveries)
    for run in found.runs:
        output.line(f"{run.ref}  {say(f'state.{run.state}')}  {run.name}")
    for review in found.reviews:
        output.line(f"{review.id}  {say(f'cli.review_state.{review.state}')}  {review.title}")


def _table(found: "list[DeliveryView]") -> None:
    head = [say(f"cli.word.{name}") for name in ("created", "trigger", "state", "commit", "run", "result")]
    rows = [
        [
            output.when(one.created_us),
            one.trigger,
            say(f"cli.delivery.{one.state}"),
            one.commit[:9] or one.dataset,
            one.run or one.run_id,
            one.result,
        ]
        for one in found
    ]
    output.table(head, rows, empty=say("cli.no_deliveries"))


@app.command("run", help=say("cli.about.trigger.run"))
def run(
    name: Name,
    commit: Annotated[str, typer.Option("--commit", metavar="COMMIT", help=say("cli.opt.trigger_commit"))] = "HEAD",
    branch: Annotated[str, typer.Option("--branch", metavar="BRANCH", help=say("cli.opt.trigger_of"))] = "",
    folder: Annotated[Path, typer.Option("--folder", metavar="DIR", help=say("cli.opt.review_folder"))] = Path(),
    space: Space = "default",
) -> None:
    from trackbed.sources.commits import commit_of, write_out

    full = commit_of(commit, folder=folder)
    with tempfile.TemporaryDirectory(prefix="trackbed-push-") as aside, client(patience_s=10.0) as api:
        write_out(full, Path(aside), folder=folder)
        made = api.triggers.pushed(name, Path(aside, "code"), commit=full, branch=branch, space=space)
    if not output.emit_json(made):
        output.line(say("cli.trigger_started", name=name, commit=full[:12], id=made.id))


_HOOK = """\
#!/bin/sh
# {about}
while read -r old new ref; do
  case "$ref" in
    {branches}) ;;
    *) continue ;;
  esac
  case "$new" in
    *[!0]*) {start} trigger run {name} --commit "$new" --branch "${{ref#refs/heads/}}" --space {space} || true ;;
  esac
done
"""


@app.command("hook", help=say("cli.about.trigger.hook"))
def hook(
    name: Name,
    branch: Branch = "*",
    install: Annotated[
        Path | None, typer.Option("--install", metavar="DIR", help=say("cli.opt.review_install"), show_default=False)
    ] = None,
    space: Space = "default",
) -> None:
    from trackbed.cli.review import branch_pattern, install_hook

    server = f" --server {shlex.quote(current().server)}" if current().server else ""
    text = _HOOK.format(
        about=say("cli.trigger_hook_about", name=name), branches=f"refs/heads/{branch_pattern(branch)}",
        start=f"{shlex.quote(sys.executable)} -m trackbed{server}", name=shlex.quote(name), space=shlex.quote(space),
    )  # fmt: skip
    if install is None:
        output.line(text.rstrip())
        return
    place = install_hook(install, "post-receive", text)
    if not output.emit_json({"path": str(place)}):
        output.line(say("cli.hook_installed", path=str(place)))
