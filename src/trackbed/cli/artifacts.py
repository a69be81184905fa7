"""`trackbed artifacts list|get`: what a run left in its output folder."""

from pathlib import Path
from typing import Annotated

import typer

from trackbed.base.units import format_size
from trackbed.cli import output
from trackbed.cli.context import client, say, word
from trackbed.cli.options import Run, Target, group

app = group()


@app.command("list", help=say("cli.about.artifacts.list"))
def list_artifacts(run: Run) -> None:
    with client() as api:
        found = api.artifacts(run)
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{name}") for name in ("artifact", "kind", "size", "attempt")]
    output.table(
        head,
        [
            [one.path, word(f"artifact_kind.{one.kind}", one.kind), format_size(one.size_bytes), one.attempt or ""]
            for one in found
        ],
    )


@app.command("get", help=say("cli.about.artifacts.get"))
def get(
    run: Run,
    path: Annotated[str, typer.Argument(metavar="PATH", help=say("cli.opt.artifact_path"), show_default=False)] = "",
    to: Target = None,
) -> None:
    with client() as api:
        known = api.artifacts(run)
        below = path.rstrip("/") + "/"
        wanted = [one for one in known if not path or one.path == path or one.path.startswith(below)] or (
            [] if not path else known[:0]
        )
        if path and not wanted:
            api.download(run, path, Path())  # says what is there
        places: list[Path] = []
        for one in wanted:
            single = one.path == path
            target = (to or Path()) if single else (to or Path()) / one.path
            places.append(api.data.download_artifact(run, one.path, target, known))
    if not output.emit_json([str(place) for place in places]):
        for place in places:
            output.line(str(place))
