"""`trackbed models list|show|pull|register|alias`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.base.units import format_size
from trackbed.cli import output
from trackbed.cli.context import client, say
from trackbed.cli.options import Run, Target, group

if TYPE_CHECKING:
    from trackbed.wire.runs import Reason

app = group()
Name = Annotated[str, typer.Argument(metavar="NAME", help=say("cli.opt.model"), show_default=False)]
Ref = Annotated[str, typer.Argument(metavar="NAME@VERSION", help=say("cli.opt.model_ref"), show_default=False)]


@app.command("list", help=say("cli.about.models.list"))
def list_models() -> None:
    with client() as api:
        found = api.models.all()
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{word}") for word in ("model", "space", "version", "aliases")]
    rows = [
        [one.name, one.space, one.latest, ", ".join(f"{name}→{number}" for name, number in one.aliases.items())]
        for one in found
    ]
    output.table(head, rows, empty=say("cli.no_models"))


@app.command("show", help=say("cli.about.models.show"))
def show(name: Name) -> None:
    with client() as api:
        found = api.models.show(name)
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{word}") for word in ("version", "aliases", "size", "run", "created", "person", "digest")]
    rows = [
        [
            f"{found.name}@{one.version}",
            ", ".join(one.aliases),
            format_size(one.size_bytes),
            one.run_ref,
            output.when(one.created_us),
            one.created_by,
            one.digest[:15],
        ]
        for one in found.versions
    ]
    output.table(head, rows)


@app.command("pull", help=say("cli.about.models.pull"))
def pull(
    ref: Ref,
    to: Target = None,
    trust: Annotated[bool, typer.Option("--trust", help=say("cli.opt.trust"))] = False,
) -> None:
    with client() as api:
        target = to or Path(ref.rpartition("/")[2].partition("@")[0])
        version = api.models.pull(ref, target, trust=trust)
    if not output.emit_json(version):
        output.line(
            say("cli.pulled", what=f"{version.model}@{version.version}", path=target, digest=version.digest[:15])
        )


@app.command("register", help=say("cli.about.models.register"))
def register(
    name: Name,
    run: Run,
    path: Annotated[str, typer.Option("--path", metavar="PATH", help=say("cli.opt.output_path"))] = "model",
) -> None:
    with client() as api:
        version = api.models.register(name, run, path=path)
    if not output.emit_json(version):
        output.line(say("cli.registered", model=f"{version.model}@{version.version}", digest=version.digest[:15]))
    _warn(version.warnings)


@app.command("alias", help=say("cli.about.models.alias"))
def alias(
    name: Name,
    alias: Annotated[str, typer.Argument(metavar="ALIAS", help=say("cli.opt.alias"), show_default=False)],
    version: Annotated[int, typer.Argument(metavar="VERSION", min=1, help=say("cli.opt.version"), show_default=False)],
    expected: Annotated[
        int | None,
        typer.Option("--expected", min=0, metavar="VERSION", help=say("cli.opt.expected"), show_default=False),
    ] = None,
) -> None:
    with client() as api:
        found = api.models.alias(name, alias, version, expected=expected)
    if not output.emit_json(found):
        output.line(f"{name}@{alias} → {found.aliases.get(alias)}")
    _warn(found.warnings)


def _warn(warnings: "list[Reason]") -> None:
    for one in warnings:
        output.note(say(f"reason.{one.code}", **one.params))
