"""`trackbed env lock|list|show|diff|name`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.base.errors import Fault
from trackbed.base.units import format_size
from trackbed.cli import context, output
from trackbed.cli.context import client, say, word
from trackbed.cli.options import Space, group

if TYPE_CHECKING:
    from trackbed.wire.environments import Difference, EnvironmentFacts, PackView

app = group()
Ref = Annotated[str, typer.Argument(metavar="ENV", help=say("cli.opt.env_ref"), show_default=False)]
_MOST_LINES = 15


@app.command("lock", help=say("cli.about.env.lock"))
def lock(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=say("cli.opt.env_source"))] = ".",
    platform: Annotated[
        list[str] | None,
        typer.Option("--platform", metavar="PLATFORM", help=say("cli.opt.env_platform"), show_default=False),
    ] = None,
    python: Annotated[
        str, typer.Option("--python", metavar="3.11", help=say("cli.opt.env_python"), show_default=False)
    ] = "",
    to: Annotated[Path, typer.Option("--to", "-o", metavar="FILE", help=say("cli.opt.env_to"))] = Path(
        "requirements.lock"
    ),
) -> None:
    from trackbed.sources.locking import lock_of
    from trackbed.sources.locks import render

    found = lock_of(source if source == "current" else Path(source), platforms=platform or (), python=python)
    _notes(found.notes)
    to.write_text(render(found), encoding="utf-8")
    told = {"digest": found.digest, "python": found.python, "platforms": list(found.platforms), "file": str(to),
            "packages": len(found.packages), "notes": [note._asdict() for note in found.notes]}  # fmt: skip
    if not output.emit_json(told):
        output.line(say("cli.env_locked", count=len(found.packages), file=to, digest=found.digest[:15],
                        platforms=", ".join(found.platforms), python=found.python))  # fmt: skip


@app.command("list", help=say("cli.about.env.list"))
def list_environments() -> None:
    with client() as api:
        found = api.environments.all()
    if output.emit_json(found):
        return
    head = [
        say(f"cli.word.{name}") for name in ("environment", "kind", "python", "packages", "runs", "names", "created")
    ]
    rows = [
        [
            one.digest[:15],
            one.kind,
            one.python,
            one.packages,
            one.runs,
            ", ".join(one.names),
            output.when(one.created_us),
        ]
        for one in found
    ]
    output.table(head, rows, empty=say("cli.no_environments"))


@app.command("show", help=say("cli.about.env.show"))
def show(ref: Ref = "here", space: Space = "default") -> None:
    from trackbed.client.environments import facts_here

    packs: list[PackView] = []
    facts = facts_here(ref)
    if facts is None:
        with client() as api:
            facts = api.environments.facts(ref, space=space)
            if facts.environment is not None and facts.environment.kind == "lock":
                packs = api.environments.show(facts.environment.digest).packs
    if output.emit_json({"facts": facts, "packs": packs}):
        return
    _facts(facts)
    for pack in packs:
        _pack(pack)


@app.command("diff", help=say("cli.about.env.diff"))
def diff(before: Ref, after: Ref = "here", space: Space = "default") -> int:
    from trackbed.client.environments import facts_here
    from trackbed.sources.compare import compare

    old, new = facts_here(before), facts_here(after)
    if old is None or new is None:
        with client() as api:
            old, new = (
                old or api.environments.facts(before, space=space),
                new or api.environments.facts(after, space=space),
            )
    found = compare(old, new)
    if output.emit_json(found):
        return 1 if found.differences else 0
    head = [say("cli.word.area"), say("cli.word.name"), found.before, found.after]
    output.table(head, [_row(one) for one in found.differences], empty=say("cli.env_same"))
    if found.unknown:
        output.note(say("cli.env_unknown", areas=", ".join(word(f"area.{one}", one) for one in found.unknown)))
    return 1 if found.differences else 0


@app.command("name", help=say("cli.about.env.name"))
def name(
    label: Annotated[str, typer.Argument(metavar="NAME", help=say("cli.opt.env_name"), show_default=False)],
    ref: Ref = "here",
    space: Space = "default",
    expected: Annotated[
        int | None, typer.Option("--expected", metavar="VERSION", help=say("cli.opt.env_expected"), show_default=False)
    ] = None,
) -> None:
    with client() as api:
        made = api.environments.name(label, ref, space=space, expected=expected)
    if not output.emit_json(made):
        output.line(
            say("cli.env_named", name=made.name, space=made.space, digest=made.digest[:15], version=made.version)
        )


def _row(one: "Difference") -> list[str]:
    return [word(f"area.{one.area}", one.area), one.name, one.before or "-", one.after or "-"]


def _notes(notes: "tuple[Fault, ...]") -> None:
    for note in notes:
        output.note(note.text(context.current().lang))


def _facts(facts: "EnvironmentFacts") -> None:
    record, around = facts.environment, facts.surroundings
    if record is not None:
        output.facts([
            (say("cli.word.environment"), record.digest), (say("cli.word.kind"), record.kind),
            (say("cli.word.python"), record.python), (say("cli.word.platform"), record.platform),
            (say("cli.word.modified"), ", ".join(record.modified)), (say("cli.word.drift"), ", ".join(facts.drift)),
        ])  # fmt: skip
    if around is not None:
        output.facts([
            ("OS", around.os), ("kernel", around.kernel), ("driver", around.driver), ("CUDA", around.cuda),
            (say("cli.word.cards"), ", ".join(around.devices)),
        ])  # fmt: skip
    if record is not None and record.packages:
        output.line()
        head = [say("cli.word.package"), say("cli.word.version"), say("cli.word.from")]
        output.table(head, [[one.name, one.version, one.source] for one in record.packages])


def _pack(pack: "PackView") -> None:
    output.line()
    output.facts([
        (say("cli.word.pack"), f"{pack.platform}  {pack.python}".strip()), (say("cli.word.state"), word(f"pack.{pack.state}", pack.state)),
        (say("cli.word.size"), format_size(pack.size_bytes) if pack.size_bytes else ""), (say("cli.word.digest"), pack.tree),
        (say("cli.word.waiting"), pack.waiting or ""),
    ])  # fmt: skip
    for note in pack.notes:
        output.note(note)
    if pack.reason is not None:
        output.line(say(f"reason.{pack.reason.code}", **pack.reason.params))
    if pack.state != "ready":
        for one in pack.log.strip().splitlines()[-_MOST_LINES:]:
            output.line(f"  {output.clean(one)}")
