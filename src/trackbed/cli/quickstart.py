"""`trackbed quickstart`: one real training run on this machine, from data to registered model, on one record.

Server on loopback (the one that runs, or a new one) → sources of this Python's standard library as dataset `stdlib` →
code, environment → recipe `pretrain` on two ranks → evaluation → `stdlib-gpt` in the registry → one table.
"""

import contextlib
import os
import shutil
import socket
import sys
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.base.errors import TrackbedError
from trackbed.base.home import home
from trackbed.base.units import format_duration, format_size
from trackbed.cli import output
from trackbed.cli.context import LONG_S, say
from trackbed.cli.down import stop
from trackbed.cli.follow import watch
from trackbed.cli.home import answers, marker
from trackbed.cli.show import code_text, environment_text, short
from trackbed.cli.up import login_url, start_detached
from trackbed.cli.wait import ended_text, exit_status

if TYPE_CHECKING:
    from trackbed.client.api import Client
    from trackbed.wire.data import DatasetVersionView
    from trackbed.wire.runs import RunDetail

PROJECT, DATASET, MODEL, SEED = "demo", "stdlib", "stdlib-gpt", 17
_SKIPPED = ("site-packages/", "dist-packages/", "__pycache__/")


def quickstart(
    cards: Annotated[int, typer.Option("--cards", min=1, metavar="N", help=say("cli.opt.quickstart_cards"))] = 2,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, metavar="N", help=say("cli.opt.steps"), show_default=False)
    ] = None,
    leave: Annotated[bool, typer.Option("--leave", help=say("cli.opt.leave"))] = False,
) -> int:
    from trackbed.client.api import Client

    began = time.monotonic()
    url, ours = _server()
    try:
        with Client(url, patience_s=LONG_S) as api:
            status = _story(api, cards=cards, steps=steps, began=began)
        if status == 0 and ours and not leave and sys.stdin.isatty() and sys.stdout.isatty():
            _stay(url)
        return status
    finally:
        if ours and not leave:
            _stop(ours)


def _story(api: "Client", *, cards: int, steps: int | None, began: float) -> int:
    _step(say("cli.quick.data", path=_stdlib()))
    version = add_stdlib(api)
    _done(say("cli.data_unchanged" if version.unchanged else "cli.data_added", name=version.dataset, version=version.version,
              files=version.files, size=format_size(version.size_bytes), digest=short(version.digest)))  # fmt: skip
    total = sum(len(node.cards) for node in api.pool.nodes())
    if total < cards:
        _done(say("cli.quick.few_cards", total=total, cards=cards))
    from trackbed.client.submit import prepare

    _step(say("cli.quick.submit"))
    reply = api.send(prepare(_spec(version, min(cards, total) or 1, steps), folder=_code()))
    _done(say("cli.submitted", ref=reply.ref, url=reply.url or f"{api.url}/runs/{reply.run_id}"))
    try:
        detail = watch(api, reply.run_id)
    except KeyboardInterrupt:  # the server goes with us: nobody would look after the run
        output.note("")
        output.note(say("cli.quick.stopping", ref=reply.ref))
        api.verb(reply.run_id, "stop", grace_s=5)
        api.wait(reply.run_id, timeout_s=20)
        raise
    if exit_status(detail):
        output.line(ended_text(detail))
        _last_lines(api, reply.run_id)
        return 1
    _sample(api, detail)
    _summary(api, detail, version, time.monotonic() - began)
    return 0


def _spec(version: "DatasetVersionView", cards: int, steps: int | None) -> dict[str, object]:
    return {
        "project": PROJECT,
        "name": "quickstart",
        "description": say("cli.quick.description"),
        "recipe": "pretrain",
        "data": {"corpus": f"{version.dataset}@{version.version}"},
        "seed": SEED,
        "params": {} if steps is None else {"steps": steps},
        "resources": {"cards": cards},
        "register": {"model": MODEL, "when": "metrics.'eval/loss' < 100"},
    }


def add_stdlib(api: "Client") -> "DatasetVersionView":
    """Add the sources of this Python's standard library: `*.py`, installed packages and links aside."""
    from trackbed.storage.scan import scan

    root = _stdlib()

    def keep(path: str) -> bool:
        if path.endswith("/"):
            return not path.endswith(_SKIPPED)
        return path.endswith(".py") and not (root / path).is_symlink()

    live = output.Live()
    message = f"CPython {sys.version.split()[0]}"
    found = scan(root, keep=keep)
    version = api.data.commit(
        DATASET, found, message=message, on_progress=lambda done, total: _sending(live, done, total)
    )
    live.clear()
    return version


def _sending(live: output.Live, done: int, total: int) -> None:
    if total:
        live.show("  " + say("cli.sending", done=format_size(done), total=format_size(total)))


def _stdlib() -> Path:
    return Path(sysconfig.get_path("stdlib"))


def _code() -> Path:
    """Return the working tree around this folder if it is Trackbed's own, else the installed package."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / ".git").exists() and (folder / "src" / "trackbed").is_dir():
            return folder
    return Path(__file__).parents[1]


def _server() -> tuple[str, int]:
    """Return the address of a server of this home folder, and its process id if it was started here (0 else)."""
    running = marker()
    if running is not None and answers(running.url):
        _done(say("cli.quick.server_there", url=running.url))
        return running.url, 0
    _step(say("cli.quick.server", home=home()))
    started = start_detached(["--port", str(_free_port())])
    _done(say("cli.up", url=started.url))
    _done(say("cli.sign_in", url=login_url(started.url)))
    return started.url, started.pid


def _free_port(wanted: int = 8470) -> int:
    """Return 8470, or 0 (any free one) where something else listens there."""
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            _done(say("cli.quick.port_taken", port=wanted))
            return 0
        return wanted


def _sample(api: "Client", detail: "RunDetail") -> None:
    with contextlib.suppress(TrackbedError):
        content = api.read_artifact(detail.run.id, "sample.txt").decode("utf-8", "replace").strip()
        output.line()
        output.line(output.bold(say("cli.quick.sample")))
        for text in content.splitlines()[:14]:
            output.line("  │ " + output.clean(text.replace("\t", "    ")))


def _summary(api: "Client", detail: "RunDetail", version: "DatasetVersionView", seconds: float) -> None:
    view = detail.run
    keys = {info.key: info for info in api.keys(view.id)}
    loss, held_out = keys.get("loss"), keys.get("eval/loss")
    current = next((one for one in detail.checkpoints if one.state == "current"), None)
    output.line()
    output.line(output.bold(say("cli.quick.record", ref=view.ref)))
    output.facts([
        (say("cli.word.dataset_version"), f"{version.dataset}@{version.version}  {short(version.digest)}  {say('cli.files', count=version.files, size=format_size(version.size_bytes))}"),
        (say("cli.word.code"), code_text(detail)),
        (say("cli.word.environment"), environment_text(detail)),
        (say("cli.word.seed"), str(detail.spec.seed)),
        (say("cli.word.steps"), f"{loss.last_step if loss else 0}"),
        (say("cli.word.loss"), f"{output.number(loss.first)} → {output.number(loss.last)}  {say('cli.nats')}" if loss else ""),
        (say("cli.word.eval_loss"), f"{output.number(held_out.last)}  {say('cli.nats_held_out')}" if held_out else ""),
        (say("cli.word.checkpoint"), f"{current.name}  {short(current.digest)}  {format_size(current.size_bytes)}" if current else ""),
        (say("cli.word.model"), ", ".join(detail.models)),
        (say("cli.word.card_hours"), f"{view.card_seconds / 3600:.4f}"),
        (say("cli.word.took"), say("cli.quick.took", training=format_duration((view.ended_us - view.started_us) / 1e6), all=format_duration(seconds))),
        (say("cli.word.board"), f"{api.url}/runs/{view.id}"),
    ])  # fmt: skip


def _last_lines(api: "Client", run: str) -> None:
    with contextlib.suppress(TrackbedError):
        for line in api.logs(run, tail=20):
            output.note(f"  │ {output.clean(line.text)}")


def _stay(url: str) -> None:
    output.line()
    output.line(say("cli.quick.stay"))
    output.line(login_url(url))
    with contextlib.suppress(KeyboardInterrupt):
        while answers(url):
            time.sleep(1)
    output.line()
    program = "trackbed" if shutil.which("trackbed") else os.path.relpath(sys.argv[0])
    output.line(say("cli.quick.stopped", home=home(), command=f"{program} up"))


def _stop(pid: int) -> None:
    with contextlib.suppress(TrackbedError):
        stop(pid)


def _step(text: str) -> None:
    output.line(f"{output.paint('▸', '36')} {text}")


def _done(text: str) -> None:
    output.line(f"  {text}")
