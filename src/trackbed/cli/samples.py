"""`trackbed samples RUN`: inputs and outputs that a run kept, and their replay against a command."""

import json
import shlex
from typing import Annotated, Any

import typer

from trackbed.cli import output
from trackbed.cli.context import client, say
from trackbed.cli.options import Run

_SHOWN = 60


def samples(
    run: Run,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help=say("cli.opt.samples_name"))] = "",
    replay: Annotated[str, typer.Option("--replay", metavar="COMMAND", help=say("cli.opt.samples_replay"))] = "",
    tolerance: Annotated[float, typer.Option("--tolerance", min=0.0, help=say("cli.opt.samples_tolerance"))] = 0.0,
) -> int:
    from trackbed.client.samples import replay as play

    with client() as api:
        found = [one for one in api.samples(run) if not name or one.name == name]
    results = [play(one, shlex.split(replay), tolerance=tolerance) for one in found] if replay else []
    if output.emit_json(results or found):
        pass
    elif replay:
        head = [say(f"cli.word.{word}") for word in ("sample", "step", "replayed")]
        output.table(
            head, [[one.sample.name, one.sample.step, _told(one)] for one in results], empty=say("cli.samples_none")
        )
    else:
        head = [say(f"cli.word.{word}") for word in ("sample", "step", "input", "output")]
        rows = [[one.name, one.step, _short(one.inputs), _short(one.outputs)] for one in found]
        output.table(head, rows, empty=say("cli.samples_none"))
    return 1 if any(one.verdict in ("differs", "failed") for one in results) else 0


def _told(one: Any) -> str:
    texts = {
        "equal": say("cli.sample_equal"), "differs": say("cli.sample_differs", what=one.what),
        "failed": say("cli.sample_failed", what=one.what), "masked": say("cli.sample_masked", fields=one.what),
    }  # fmt: skip
    return texts[one.verdict]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
