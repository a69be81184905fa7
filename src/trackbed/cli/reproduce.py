"""`trackbed reproduce RUN`: train again from the record alone; `--verify` compares bit for bit."""

import struct
from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.cli import output
from trackbed.cli.context import LONG_S, client, say
from trackbed.cli.follow import watch
from trackbed.cli.options import Run
from trackbed.cli.wait import ended_text, exit_status

if TYPE_CHECKING:
    from trackbed.client.api import Client
    from trackbed.wire.runs import RunView


def reproduce(
    run: Run,
    wait: Annotated[bool, typer.Option("--wait", help=say("cli.opt.wait"))] = False,
    verify: Annotated[bool, typer.Option("--verify", help=say("cli.opt.verify"))] = False,
) -> int:
    with client(patience_s=LONG_S if wait or verify else 2.0) as api:
        first = api.run(run).run  # now: `-` and `demo/name` name the reproduction once it is there
        reply = api.reproduce(first.id)
        output.note(say("cli.reproducing", run=first.ref, ref=reply.ref, url=reply.url))
        if not wait and not verify:
            output.emit_json(reply)
            return 0
        detail = watch(api, reply.run_id)
        output.note(ended_text(detail))
        if not verify or exit_status(detail):
            output.emit_json(detail.run)
            return exit_status(detail)
        return _verify(api, first, reply.run_id, reply.ref)


def _verify(api: "Client", first: "RunView", second: str, ref: str) -> int:
    """Compare every metric that is declared deterministic; 1 where one differs or none is declared."""
    declared = [info.key for info in api.keys(first.id, limit=10_000) if info.definition.get("deterministic")]
    rows = [{"key": key, **_compare(api, first.id, second, key)} for key in declared]
    same = bool(rows) and all(row["equal"] for row in rows)
    if not output.emit_json({"run": first.ref, "reproduction": ref, "run_id": second, "equal": same, "metrics": rows}):
        head = [say(f"cli.word.{name}") for name in ("metric", "points", "equal", "first_difference")]
        cells = [
            [row["key"], row["points"], say("cli.word.yes" if row["equal"] else "cli.word.no"), row["differs_at"]]
            for row in rows
        ]
        output.table(head, cells, empty=say("cli.none_deterministic"))
        if rows:
            output.line(say("cli.reproduced" if same else "cli.not_reproduced", run=first.ref, ref=ref))
    return 0 if same else 1


def _compare(api: "Client", first: str, second: str, key: str) -> dict[str, object]:
    ours = [(point.step, struct.pack("<d", point.value)) for point in api.history(first, key)]
    theirs = [(point.step, struct.pack("<d", point.value)) for point in api.history(second, key)]
    differs = next((one[0] for one, other in zip(ours, theirs, strict=False) if one != other), None)
    if differs is None and len(ours) != len(theirs):
        differs = (ours + theirs)[min(len(ours), len(theirs))][0]
    return {"points": len(ours), "equal": differs is None, "differs_at": differs}
