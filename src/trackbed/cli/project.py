"""`trackbed project list`."""

from trackbed.cli import output
from trackbed.cli.context import client, say
from trackbed.cli.options import group

app = group()


@app.callback()
def projects() -> None:
    """Keeps `list` a word of its own while it is the only one."""


@app.command("list", help=say("cli.about.project.list"))
def list_projects() -> None:
    with client() as api:
        found = api.people.projects()
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{name}") for name in ("project", "space", "runs", "created")]
    output.table(head, [[one.name, one.space, one.runs, output.when(one.created_us)] for one in found])
