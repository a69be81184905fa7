"""`trackbed reproduce RUN`: train again from the record alone; `--verify` compares bit for bit."""

import struct
from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.cli import output
from trackbed.cli.context import LONG_S, client, say
from trackbed.cli.follow import watch
from trackbed.cli.options import Run
from trackbed.cli.wait import ended_text, exit_status

_SHOWN = 10  # differences

if TYPE_CHECKING:
    from trackbed.client.api import Client
    from trackbed.wire.runs import ReproductionVerdict, RunView


def reproduce(
    run: Run,
    wait: Annotated[bool, typer.Option("--wait", help=say("cli.opt.wait"))] = False,
    verify: Annotated[bool, typer.Option("--verify", help=say("cli.opt.verify"))] = False,
    on: Annotated[str, typer.Option("--on", metavar="URL", help=say("cli.opt.reproduce_on"), show_default=False)] = "",
) -> int:
    if on:
        return _elsewhere(run, on, stay=wait or verify, verify=verify)
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


def _elsewhere(run: str, url: str, *, stay: bool, verify: bool) -> int:
    """The same on another server."""
    from trackbed.client.api import Client
    from trackbed.client.elsewhere import compared, reproduce_on

    with client(patience_s=LONG_S) as api, Client(url, patience_s=LONG_S) as there:
        first = api.run(run).run
        reply = reproduce_on(api, there, first.id)
        output.note(say("cli.reproducing", run=first.ref, ref=reply.ref, url=reply.url))
        if not stay:
            output.emit_json(reply)
            return 0
        detail = watch(there, reply.run_id)
        output.note(ended_text(detail))
        if not verify or exit_status(detail):
            output.emit_json(detail.run)
            return exit_status(detail)
        return _tell(compared(api, first.id, there, reply.run_id), [], first.ref, reply.ref)


def _verify(api: "Client", first: "RunView", second: str, ref: str) -> int:
    """Compare curves, products and outputs; 1 where one differs beyond the tolerance, or there was nothing to compare."""
    declared = [info.key for info in api.keys(first.id, limit=10_000) if info.definition.get("deterministic")]
    rows = [{"key": key, **_compare(api, first.id, second, key)} for key in declared]
    return _tell(api.verdict(second), rows, first.ref, ref)


def _tell(found: "ReproductionVerdict", rows: list[dict[str, object]], run: str, ref: str) -> int:
    """Show a verdict; 0 where the runs are equal, bit for bit or within the tolerance."""
    told = {
        "run": run, "reproduction": ref, "run_id": found.run, "equal": found.equal, "verdict": found.verdict,
        "metrics": rows, "unequal": found.unequal, "why": found.why, "products": found.products, "outputs": found.outputs,
        "nondeterminism": found.nondeterminism,
    }  # fmt: skip
    if not output.emit_json(told):
        head = [say(f"cli.word.{name}") for name in ("metric", "points", "equal", "first_difference")]
        cells = [
            [row["key"], row["points"], say("cli.word.yes" if row["equal"] else "cli.word.no"), row["differs_at"]]
            for row in rows
        ]
        output.table(head, cells, empty=say("cli.none_deterministic"))
        if found.products or found.outputs:
            output.line(say("cli.reproduce.compared", products=found.products, outputs=found.outputs))
        for one in found.unequal[:_SHOWN]:
            name = f"{say(f'cli.word.{one.what}')} {one.name}"
            output.line(f"  {name}: {one.before[:15] or '-'} → {one.after[:15] or '-'}")
        for why in found.why:
            output.line(f"  · {say(f'reason.{why.code}', **why.params)}")
        words = {"equal": "cli.reproduced", "within": "cli.reproduce.within", "differs": "cli.not_reproduced"}
        if found.verdict in words:
            output.line(say(words[found.verdict], run=run, ref=ref, greatest=f"{found.greatest:.1e}"))
    return 0 if found.verdict in ("equal", "within") else 1


def _compare(api: "Client", first: str, second: str, key: str) -> dict[str, object]:
    ours = [(point.step, struct.pack("<d", point.value)) for point in api.history(first, key)]
    theirs = [(point.step, struct.pack("<d", point.value)) for point in api.history(second, key)]
    differs = next((one[0] for one, other in zip(ours, theirs, strict=False) if one != other), None)
    if differs is None and len(ours) != len(theirs):
        differs = (ours + theirs)[min(len(ours), len(theirs))][0]
    return {"points": len(ours), "equal": differs is None, "differs_at": differs}
