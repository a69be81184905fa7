"""Where everything is wired: the only module of the server that knows concrete classes.

`serve` is the guts of `trackbed up`: it opens database, store and engine, makes the first admin, starts the loops, and
speaks HTTP until SIGINT or SIGTERM. Supervisors are processes of their own and go on without it.
"""

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Generator, Iterator
from logging import Logger, getLogger
from types import FrameType
from typing import Any, Protocol

import uvicorn
from litestar import Litestar
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.router import Router

from trackbed import access
from trackbed.base import logging
from trackbed.base.clock import SystemClock
from trackbed.base.errors import Conflict, Internal, TrackbedError
from trackbed.base.home import remember_store
from trackbed.clusters import open_engine
from trackbed.db import Database, Tx
from trackbed.domain.scope import SYSTEM, Permission
from trackbed.server import auth, static_files
from trackbed.server.app import App, Settings
from trackbed.server.board import Board
from trackbed.server.domains import Domains, SpaceStore
from trackbed.server.idempotency import recall
from trackbed.server.installation import first_admin, prepare_installation, read_json, write_credentials, write_private
from trackbed.server.loops import runner
from trackbed.server.mlflow import routes as mlflow
from trackbed.server.mlflow.errors import answer
from trackbed.server.pointers import database_refs
from trackbed.server.routes import access as access_routes
from trackbed.server.routes import (
    artifacts,
    attempts,
    blobs,
    bundles,
    code,
    compare,
    datasets,
    docs,
    doctor,
    environments,
    frames,
    logs,
    marks,
    metric_tags,
    models,
    pool,
    reviews,
    runs,
    series,
    store,
    stream,
    system,
    table,
    templates,
    triggers,
)
from trackbed.server.stream import Feed
from trackbed.storage.chunks import ChunkStore
from trackbed.storage.domains import domain_url, further_places
from trackbed.storage.key_file import KeyFile
from trackbed.storage.open import Options, open_backend, open_chunks
from trackbed.storage.transfer import Pace

MOST_BODY = 64 << 20  # bytes; blob and frame routes set their own
_ROUTES: tuple[Any, ...] = (
    access_routes,
    system,
    stream,
    table,
    runs,
    reviews,
    attempts,
    pool,
    frames,
    series,
    logs,
    marks,
    metric_tags,
    compare,
    artifacts,
    blobs,
    bundles,
    code,
    datasets,
    models,
    templates,
    environments,
    docs,
    doctor,
    triggers,
    mlflow,
    store,
    static_files,
)


class Stoppable(Protocol):
    def stop(self) -> None: ...


def route_handlers() -> list[Any]:
    """Return every handler of the API and of the page."""
    return [handler for module in _ROUTES for handler in module.routes]


def build_app(app: App) -> Litestar:
    """Return the ASGI application.

    Raises:
        Internal: `route_without_permission`, for a handler that does not say who may use it.
    """
    board = Board(
        route_handlers=route_handlers(),
        guards=[auth.guard],
        dependencies={
            "trackbed_app": Provide(lambda: app, sync_to_thread=False),
            "who": Provide(auth.provide_who),
            "login": Provide(auth.provide_login),
            "session": Provide(auth.provide_session),
        },
        before_request=recall,
        exception_handlers={HTTPException: answer, TrackbedError: answer, Exception: answer},
        request_max_body_size=MOST_BODY,
        state=State(
            {
                "trackbed": app,
                "hosts": frozenset(
                    {"127.0.0.1", "localhost", "[::1]", *(n.lower() for n in app.settings.allowed_hosts)}
                ),
                "static_files": static_files.StaticFiles(static_files.FOLDER),
            }
        ),
        openapi_config=OpenAPIConfig(
            title="Trackbed",
            version="1",
            render_plugins=[JsonRenderPlugin()],
            openapi_router=Router(
                "/api/v1/schema",
                route_handlers=[],
                include_in_schema=False,
                opt={"permission": Permission.SIGNED_IN},
            ),
        ),
        logging_config=None,
        debug=False,
    )
    for path, method, handler in walk(board):
        if auth.declared(handler) is None:
            raise Internal("route_without_permission", route=f"{method} {path}")
    return board


def walk(board: Litestar) -> Iterator[tuple[str, str, Any]]:
    """Yield path, method and handler of every route, streams and static files too. The door answers all OPTIONS."""
    for route in board.routes:
        handlers: list[Any] = getattr(route, "route_handlers", None) or [getattr(route, "route_handler", None)]
        for handler in handlers:
            for method in sorted(getattr(handler, "http_methods", None) or {"ASGI"}):
                if method != "OPTIONS":
                    yield route.path, str(method), handler


def open_app(settings: Settings) -> App:
    """Return an opened installation: folders with their modes, database, store, engine, first admin. No HTTP yet.

    Raises:
        Conflict: `database_in_use`: another server runs on this home folder.
    """
    settings.home.mkdir(parents=True, exist_ok=True)
    settings.home.chmod(0o700)
    clock = SystemClock()
    db = Database.open(settings.database_url, clock=clock)
    try:
        db.prepare()
        first = open_sealed(settings, db=db)
        remember_store(settings.home, settings.store_url)
        domains = Domains(db, first, lambda domain: open_sealed(settings, domain, db=db))
        app = App(
            db=db,
            store=SpaceStore(domains, first),
            domains=domains,
            engine=open_engine(settings.cluster, home=settings.home, cards=settings.card_slots or None),
            clock=clock,
            home=settings.home,
            settings=settings,
            started_us=clock.now_us(),
        )
        prepare_installation(app)
        domains.prepare()
    except BaseException:
        db.close()
        raise
    return app


def open_sealed(settings: Settings, domain: str = "", *, db: Database | None = None) -> ChunkStore:
    """A domain of an installation's store, under the master key of its home folder; both are made at the first start.

    Where the place keeps no conditions, pointers live in the database.
    """
    place = open_backend(settings.store_url)
    master = KeyFile(settings.home / "keys").master(place, further_places(settings.store_url))
    cache = settings.home / "cache" / "index" if settings.store_url.startswith("s3:") else None
    pace = Pace(settings.store_rate) if settings.store_rate else None
    refs = database_refs(db, domain) if db is not None and not getattr(place, "conditions", True) else None
    return open_chunks(domain_url(settings.store_url, domain), master, Options(cache=cache, pace=pace, refs=refs))


def listen(host: str, port: int) -> socket.socket:
    """Return the bound socket of the server.

    Raises:
        Conflict: `port_in_use`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # named TCP, or asyncio does not know it for one and lets every answer wait 40 ms for Nagle's algorithm
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise Conflict("port_in_use", host=host, port=port, why=error.strerror) from error
    sock.listen(1024)
    return sock


class _Server(uvicorn.Server):
    """Ends streams and long polls first, so that a graceful stop has nothing to wait for."""

    def __init__(self, config: uvicorn.Config, app: App) -> None:
        super().__init__(config)
        self._app = app

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take SIGINT and SIGTERM for the time of serving, without raising them again afterwards as uvicorn does:
        what `run` still has to put in order must not be cut off."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._app.stopping.set()
        self._app.publisher.close()
        self._app.wake.close()
        super().handle_exit(sig, frame)


def hush(ours: Logger | None) -> None:
    """Send what libraries log through our own sink, which masks secrets; warnings and worse only."""
    for name in ("uvicorn", "uvicorn.error", "asyncio", "sqlalchemy", "litestar", "psycopg"):
        logger = getLogger(name)
        logger.handlers[:] = ours.handlers if ours else []
        logger.setLevel("WARNING")
        logger.propagate = False


def serve(settings: Settings) -> None:
    """Run the server in the foreground until SIGINT or SIGTERM.

    Raises:
        Conflict: `database_in_use`, `port_in_use`.
        Internal: `database_failed`, when a commit could not be made durable; start again after looking at the disk.
    """
    os.umask(0o077)
    hush(logging.setup("server", level=settings.log_level).parent)
    app = open_app(settings)
    try:
        with listen(settings.host, settings.port) as sock:
            host = f"[{settings.host}]" if ":" in settings.host else settings.host
            app.url = f"http://{host}:{sock.getsockname()[1]}"
            run(app, sock)
    finally:
        app.db.close()


def run(app: App, sock: socket.socket) -> None:
    """Serve an opened installation on a bound socket."""
    board = build_app(app)
    write_credentials(app)
    config = uvicorn.Config(
        board,
        access_log=False,
        log_config=None,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=75,
        timeout_graceful_shutdown=10,
        ws="none",
    )
    server = _Server(config, app)
    failed: list[bool] = []

    def fail() -> None:
        failed.append(True)
        os.kill(os.getpid(), signal.SIGTERM)

    app.db.on_fatal(fail)
    parts: list[Stoppable] = [Feed(app.db, app.publisher)]
    if app.settings.loops:
        parts.append(runner.start(app))
    marker = app.home / "server.json"
    write_private(marker, {"pid": os.getpid(), "url": app.url, "started_us": app.started_us})
    try:
        say_hello(app)
        server.run(sockets=[sock])
    finally:
        app.stopping.set()
        for part in reversed(parts):
            part.stop()
        if read_json(marker).get("pid") == os.getpid():
            marker.unlink(missing_ok=True)
    if failed:
        raise Internal("database_failed", what="see the log")


def say_hello(app: App) -> None:
    """Print where the board is, how to get in, and what to know about trust."""

    def work(tx: Tx) -> str:
        return access.issue_login_link(tx, SYSTEM, person_id=first_admin(tx))

    code = app.db.write(work, actor=SYSTEM.actor)
    print(f"Trackbed is up: {app.url}  (Ctrl-C stops it; running jobs go on)")
    print(f"Sign in once, within 15 minutes: {access_routes.login_url(app, code)}")
    if not KeyFile(app.home / "keys").exported:
        print(
            "No recovery kit yet: without the key in this home folder all data is lost. Make one: trackbed keys export"
        )
    if app.one_trust_domain:
        print(
            "One trust domain: jobs run under this server's own account, so whoever may submit can read what it can read."
        )
    sys.stdout.flush()
