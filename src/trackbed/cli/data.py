"""`trackbed data add|list|show|pull`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.base.units import format_size
from trackbed.cli import output
from trackbed.cli.context import client, say
from trackbed.cli.options import Message, Space, Target, group

if TYPE_CHECKING:
    from trackbed.wire.data import DatasetVersionView

app = group()
Name = Annotated[str, typer.Argument(metavar="NAME", help=say("cli.opt.dataset"), show_default=False)]
Ref = Annotated[str, typer.Argument(metavar="NAME@VERSION", help=say("cli.opt.dataset_ref"), show_default=False)]


@app.command("add", help=say("cli.about.data.add"))
def add(
    name: Name,
    path: Annotated[Path, typer.Argument(metavar="PATH", help=say("cli.opt.data_path"), show_default=False)],
    message: Message = "",
    space: Space = "default",
) -> None:
    live = output.Live(every_s=2.0)
    with client() as api:
        version = api.data.add(
            name, path, message=message, space=space, on_progress=lambda done, total: output.sending(live, done, total)
        )
    live.clear()
    if not output.emit_json(version):
        output.line(version_text(version))


def version_text(version: "DatasetVersionView") -> str:
    text = "cli.data_unchanged" if version.unchanged else "cli.data_added"
    return say(
        text,
        name=version.dataset,
        version=version.version,
        files=version.files,
        size=format_size(version.size_bytes),
        digest=version.digest[:15],
    )


@app.command("list", help=say("cli.about.data.list"))
def list_datasets(
    space: Annotated[str, typer.Option("--space", metavar="SPACE", help=say("cli.opt.space"), show_default=False)] = "",
) -> None:
    with client() as api:
        found = api.data.all(space)
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{name}") for name in ("dataset", "space", "version", "files", "size", "created", "digest")]
    rows = [
        [
            one.name,
            one.space,
            one.latest,
            *_version_cells(next((v for v in one.versions if v.version == one.latest), None)),
        ]
        for one in found
    ]
    output.table(head, rows, empty=say("cli.no_data"))


@app.command("show", help=say("cli.about.data.show"))
def show(
    name: Name,
    space: Annotated[str, typer.Option("--space", metavar="SPACE", help=say("cli.opt.space"), show_default=False)] = "",
) -> None:
    with client() as api:
        found = api.data.show(name, space)
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{word}") for word in ("version", "files", "size", "created", "digest", "person", "message")]
    rows = [
        [f"{found.name}@{one.version}", *_version_cells(one), one.created_by, one.message] for one in found.versions
    ]
    output.table(head, rows)


@app.command("pull", help=say("cli.about.data.pull"))
def pull(
    ref: Ref,
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]...", help=say("cli.opt.pull_paths"), show_default=False)
    ] = None,
    to: Target = None,
    rate: Annotated[float, typer.Option("--rate", min=0, metavar="MB/S", help=say("cli.opt.pull_rate"))] = 0.0,
) -> None:
    from trackbed.storage.transfer import Meter

    live = output.Live(every_s=2.0)
    meter = Meter(lambda speed: output.coming(live, speed.done, speed.total, speed.bytes_per_s, speed.left_s))
    with client() as api:
        target = to or Path(ref.rpartition("/")[2].partition("@")[0])
        version = api.data.pull(
            ref, target, paths=paths or (), bytes_per_s=rate * 1e6 or None, on_progress=meter
        )  # fmt: skip
    live.clear()
    if not output.emit_json(version):
        output.line(
            say("cli.pulled", what=f"{version.dataset}@{version.version}", path=target, digest=version.digest[:15])
        )


def _version_cells(version: "DatasetVersionView | None") -> list[object]:
    if version is None:
        return ["", "", "", ""]
    return [version.files, format_size(version.size_bytes), output.when(version.created_us), version.digest[:15]]
