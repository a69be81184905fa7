"""`trackbed store status|settings|verify|gc|move|check`. Verify and move need the key file of the server, not the server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trackbed.base.errors import Denied
from trackbed.base.home import home, store_url
from trackbed.base.units import format_size
from trackbed.cli import output
from trackbed.cli.context import client, say, seconds, size_bytes
from trackbed.cli.options import group

if TYPE_CHECKING:
    from trackbed.storage.chunks import ChunkStore
    from trackbed.wire.store import GcState, StoreView, VerifyReply

app = group()
Place = Annotated[str, typer.Option("--store", metavar="URL", help=say("cli.opt.store_here"), show_default=False)]


@app.command("status", help=say("cli.about.store.status"))
def status() -> None:
    with client() as api:
        view = api.pool.store()
    if output.emit_json(view):
        return
    gc, unknown = view.gc, "-"
    room = unknown
    if view.free_bytes is not None and view.total_bytes is not None:
        room = say("cli.store_room", free=format_size(view.free_bytes), total=format_size(view.total_bytes))
    growth = unknown if view.growth_bytes_per_h is None else _per_hour(view.growth_bytes_per_h)
    every = view.settings.gc_every_s
    output.facts([
        (say("cli.word.store"), view.url),
        (say("cli.word.size"), format_size(view.stored_bytes)),
        (say("cli.word.free"), room),
        (say("cli.word.growth"), growth),
        (say("cli.word.hours_left"), unknown if view.hours_left is None else f"{view.hours_left:.1f}"),
        (say("cli.word.collected"), _collected(gc)),
        (say("cli.word.next"), output.when(gc.next_us) if every else say("cli.store_gc_never")),
        (say("cli.word.to_free"), say("cli.store_to_free", count=view.checkpoints_to_free, size=format_size(view.bytes_to_free))),
    ])  # fmt: skip
    if view.low:
        output.note(say("reason.store_low", **low_params(view)))
    if gc.failed:
        output.note(gc.why)


@app.command("settings", help=say("cli.about.store.settings"))
def settings(
    gc_every: Annotated[str, typer.Option("--gc-every", metavar="TIME", help=say("cli.opt.store_gc_every"))] = "",
    grace: Annotated[str, typer.Option("--grace", metavar="TIME", help=say("cli.opt.store_gc_grace"))] = "",
    dry_run: Annotated[
        bool | None, typer.Option("--dry-run/--no-dry-run", help=say("cli.opt.store_gc_dry"), show_default=False)
    ] = None,
    low_water: Annotated[str, typer.Option("--low-water", metavar="TIME", help=say("cli.opt.store_low_water"))] = "",
    capacity: Annotated[str, typer.Option("--capacity", metavar="SIZE", help=say("cli.opt.store_capacity"))] = "",
) -> None:
    with client() as api:
        now = api.pool.store().settings
        if gc_every:
            now.gc_every_s = 0.0 if gc_every == "off" else seconds(gc_every, "--gc-every")
        if grace:
            now.gc_grace_s = seconds(grace, "--grace")
        if dry_run is not None:
            now.gc_dry_run = dry_run
        if low_water:
            now.low_water_h = seconds(low_water, "--low-water") / 3600
        if capacity:
            now.capacity_bytes = size_bytes(capacity)
        if gc_every or grace or low_water or capacity or dry_run is not None:
            now = api.pool.set_store(now)
    if output.emit_json(now):
        return
    output.facts([
        (say("cli.word.gc_every"), f"{now.gc_every_s / 3600:g} h" if now.gc_every_s else say("cli.store_gc_never")),
        (say("cli.word.grace"), f"{now.gc_grace_s / 3600:g} h"),
        (say("cli.word.dry_run"), say("cli.yes" if now.gc_dry_run else "cli.no")),
        (say("cli.word.low_water"), f"{now.low_water_h:g} h"),
        (say("cli.word.capacity"), format_size(now.capacity_bytes) if now.capacity_bytes else "-"),
    ])  # fmt: skip


def _per_hour(growth: float) -> str:
    return f"{'-' if growth < 0 else ''}{format_size(abs(round(growth)))}/h"


def low_params(view: "StoreView") -> dict[str, Any]:
    """Values of the sentence `reason.store_low`."""
    hours = "-" if view.hours_left is None else f"{view.hours_left:.1f}"
    return {"free": format_size(view.free_bytes or 0), "total": format_size(view.total_bytes or 0), "hours": hours}


def _collected(gc: "GcState") -> str:
    if gc.report is None:
        return say("cli.store_gc_none")
    key = "cli.store_gc_would_last" if gc.report.dry_run else "cli.store_gc_last"
    freed, marked = format_size(gc.report.bytes_freed), format_size(gc.report.bytes_marked)
    return say(key, when=output.when(gc.last_us), freed=freed, marked=marked)


@app.command("verify", help=say("cli.about.store.verify"))
def verify(
    share: Annotated[float, typer.Option("--share", metavar="0..1", help=say("cli.opt.store_share"))] = 1.0,
    repair: Annotated[bool, typer.Option("--repair", help=say("cli.opt.store_repair"))] = False,
    rebuild_index: Annotated[bool, typer.Option("--rebuild-index", help=say("cli.opt.store_rebuild"))] = False,
    store: Place = "",
) -> int:
    reply = _by_key(store, share, repair, rebuild_index) if has_key() else _by_server(share, repair or rebuild_index)
    if not output.emit_json(reply):
        _tell(reply)
    return 0 if reply.clean else 8


@app.command("gc", help=say("cli.about.store.gc"))
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help=say("cli.opt.store_dry"))] = False,
    grace: Annotated[str, typer.Option("--grace", metavar="TIME", help=say("cli.opt.store_grace"))] = "24h",
    no_compact: Annotated[bool, typer.Option("--no-compact", help=say("cli.opt.store_no_compact"))] = False,
) -> None:
    from trackbed.wire.store import CollectRequest

    asked = CollectRequest(dry_run=dry_run, grace_s=seconds(grace, "--grace"), compact=not no_compact)
    with client() as api:
        reply = api.pool.collect_store(asked)
    if output.emit_json(reply):
        return
    output.line(
        say(
            "cli.store_gc_would" if dry_run else "cli.store_gc_did",
            freed=format_size(reply.bytes_freed),
            marked=format_size(reply.bytes_marked),
            trees=reply.trees_dropped,
            packs=reply.packs_swept,
            stored=format_size(reply.bytes_stored),
            grace=grace,
        )
    )


@app.command("move", help=say("cli.about.store.move"))
def move_store(
    to: Annotated[str, typer.Argument(metavar="URL", help=say("cli.opt.store_to"), show_default=False)],
    store: Place = "",
    rate: Annotated[float, typer.Option("--rate", metavar="MB/S", help=say("cli.opt.store_rate"))] = 0.0,
) -> None:
    from trackbed.storage.backends.paced import PacedBackend
    from trackbed.storage.domains import domain_ids, domain_url
    from trackbed.storage.move import MoveReport, move
    from trackbed.storage.open import open_backend
    from trackbed.storage.transfer import Meter, Pace, Speed

    place = store or here()
    domains = domain_ids(open_backend(place))
    live = output.Live(every_s=2.0)

    def show(speed: Speed) -> None:
        left = "-" if speed.left_s is None else f"{speed.left_s:.0f} s"
        live.show(say("cli.store_moving", done=format_size(speed.done), total=format_size(speed.total), left=left))

    pace, report = Pace(rate * 1e6) if rate else None, MoveReport()
    for domain in [*domains, ""]:  # the first one last: nothing opens at the new place before all is there
        source, target = open_backend(domain_url(place, domain)), open_backend(domain_url(to, domain))
        report = report.plus(move(source, PacedBackend(target, pace) if pace else target, on_progress=Meter(show)))
    live.clear()
    if not output.emit_json(_plain(report)):
        output.line(
            say("cli.store_moved", objects=report.objects, size=format_size(report.bytes), copied=report.copied, to=to)
        )


@app.command("check", help=say("cli.about.store.check"))
def check(
    url: Annotated[str, typer.Argument(metavar="URL", help=say("cli.opt.store_to"), show_default=False)],
) -> int:
    from trackbed.storage.conform import conform
    from trackbed.storage.open import open_backend

    trials = conform(open_backend(url))
    if not output.emit_json([_plain(one) for one in trials]):
        for one in trials:
            mark, color = ("✓", "32") if one.holds else ("✗", "31") if one.needed else ("!", "33")
            output.line(f"{output.paint(mark, color)} {say(f'conform.{one.name}')}{f': {one.why}' if one.why else ''}")
    return 1 if any(one.needed and not one.holds for one in trials) else 0


def here() -> str:
    """URL of the store of this home folder."""
    return store_url(home())


def has_key() -> bool:
    """Whether the master key can be read by this account, on this machine."""
    import os

    return (home() / "keys" / "master.key").is_file() or "TRACKBED_MASTER_KEY" in os.environ


def open_here(url: str = "") -> "ChunkStore":
    """Open a store with the key of this home folder, with an index of its own so that nothing of the server is needed."""
    return open_all(url)[0]


def open_all(url: str = "") -> "list[ChunkStore]":
    """All domains of a store, the first one first."""
    from trackbed.storage.domains import domain_urls, further_places
    from trackbed.storage.key_file import KeyFile
    from trackbed.storage.open import Options, open_backend, open_chunks

    place = url or here()
    master = KeyFile(home() / "keys").master(open_backend(place), further_places(place))
    return [open_chunks(one, master, Options(cache=home() / "cache" / "verify")) for one in domain_urls(place)]


def _by_key(url: str, share: float, repair: bool, rebuild: bool) -> "VerifyReply":
    import dataclasses

    from trackbed.storage.repair import repair as mend
    from trackbed.storage.verify import verify as read_through
    from trackbed.wire.store import BrokenView, VerifyReply

    total = VerifyReply(clean=True)
    live = output.Live(every_s=2.0)
    for store in open_all(url):
        if rebuild:
            store.index.rebuild(store.backend, store.read_rows)
        report = read_through(
            store,
            share=share,
            on_progress=lambda done, total: live.show(
                say("cli.store_reading", done=format_size(done), total=format_size(total))
            ),
        )
        told: dict[str, Any] = dataclasses.asdict(report)
        told["broken"] = [BrokenView(what=one.what, code=one.code, why=one.why) for one in report.broken]
        if repair and report.broken:
            done = mend(store, report.broken)
            told |= {
                "quarantined": done.quarantined,
                "frames_saved": done.frames_saved,
                "frames_lost": done.frames_lost,
            }
            told["broken_trees"] = [BrokenView(what=one.what, code=one.code, why=one.why) for one in done.broken_trees]
        store.close()
        total = total.plus(VerifyReply(clean=report.clean, **told))
    live.clear()
    return total


def _by_server(share: float, more: bool) -> "VerifyReply":
    from trackbed.wire.store import VerifyRequest

    if more:
        raise Denied("storage_key_here", home=str(home()))
    with client() as api:
        return api.pool.verify_store(VerifyRequest(share=share))


def _tell(reply: "VerifyReply") -> None:
    for one in reply.broken:
        output.line(f"{output.paint('✗', '31')} {one.what}: {one.why}")
    for name in reply.quarantined:
        output.line(say("cli.store_quarantined", name=name))
    for one in reply.broken_trees:
        output.line(say("cli.store_tree_broken", tree=one.what))
    output.line(
        say(
            "cli.store_clean" if reply.clean else "cli.store_broken",
            trees=reply.trees,
            files=reply.files,
            packs=reply.packs,
            read=format_size(reply.bytes_read),
            stored=format_size(reply.bytes_stored),
            broken=len(reply.broken),
        )
    )


def _plain(report: Any) -> dict[str, Any]:
    import dataclasses

    return dataclasses.asdict(report)


def write_private(path: Path, text: str) -> None:
    """Write a new file that only its owner reads; one that is there is not overwritten."""
    import os

    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
