"""Runs from one installation into another, by one file: equal to the bit, marked as foreign, refused where it is damaged."""

import importlib.util
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trackbed.client.api import Client
from trackbed.formats import spool
from trackbed.formats.bundle import Reader
from trackbed.formats.spool import Header, Line, Metrics

_spec = importlib.util.spec_from_file_location(
    "bundles_server_process", Path(__file__).parents[1] / "server" / "server_process.py"
)
assert _spec is not None and _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
sys.modules["bundles_server_process"] = _module
_spec.loader.exec_module(_module)

NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_BEEF))[0]
VALUES = [1.5, NAN, float("inf"), -0.0, 5e-324, 0.1, 0.1]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    running = _module.Server(tmp_path_factory.mktemp("here") / "home").start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    running = _module.Server(tmp_path_factory.mktemp("there") / "home").start()
    yield running
    running.stop()


def frame(seq: int, kind: str, body: bytes, *, rank: int = 0, n: int = 1) -> bytes:
    return spool.encode(Header(kind=kind, client=f"cli_bundle{rank}", seq=seq, rank=rank, attempt=1, n=n), body)


@pytest.fixture(scope="module")
def run(here: Any) -> str:
    made = here.json("POST", "/api/v1/outside-runs", json={"project": "demo", "name": "first", "tags": ["a"]})["id"]
    count = len(VALUES)
    points = Metrics(
        ["损失/x", "=2+5"], array("I", [0] * count), array("q", [3, 1, 2, 2, 9, 4, 4]), array("q", range(count)), array("d", VALUES)
    )  # fmt: skip
    lines = [Line(5, "stdout", "info", b"hello\xff\r\x00 there"), Line(6, "stderr", "error", "错误".encode())]
    body = b"".join(
        [
            frame(1, spool.METRICS, spool.encode_metrics(points), n=count),
            frame(2, spool.PARAMS, spool.encode_document({"lr": 0.1, "big": 2**60, "odd": float("nan"), "deep": {"a": [1]}})),
            frame(3, spool.DEFINE, spool.encode_document({"key": "损失/x", "goal": "min", "unit": "nats"})),
            frame(4, spool.SUMMARY, spool.encode_document({"best": 1.5})),
            frame(5, spool.LOG, spool.encode_lines(lines)),
            frame(1, spool.METRICS, spool.encode_metrics(points), rank=2, n=count),
        ]
    )  # fmt: skip
    here.json("POST", f"/api/v1/runs/{made}/frames", content=body)
    project = here.json("GET", "/api/2.0/mlflow/experiments/get-by-name?experiment_name=demo")["experiment"][
        "experiment_id"
    ]
    for path, data in (("a/report.html", b"<p>hello"), ("same.bin", b"x" * 300_000), ("again.bin", b"x" * 300_000)):
        here.ask("PUT", f"/api/2.0/mlflow-artifacts/artifacts/{project}/{made}/artifacts/{path}", content=data)
    finish = spool.encode_document({"status": "failed", "exit_code": 3, "reason": "it broke"})
    here.json("POST", f"/api/v1/runs/{made}/frames", content=frame(6, spool.FINISH, finish))
    return made


def bits(points: list[Any]) -> list[Any]:
    return [(p.step, p.time_us, str(p.value), p.attempt, p.incarnation, p.rank) for p in points]


def everything(client: Client, run: str) -> dict[str, Any]:
    detail = client.run(run)
    return {
        "points": {key: bits(client.history(run, key, all_attempts=True)) for key in detail.metric_keys},
        "params": {name: str(value) for name, value in detail.run.params.items()},
        "summary": detail.summary, "state": (detail.run.state, detail.run.cause, detail.run.ended_us, detail.run.started_us),
        "name": detail.run.name, "files": {one.path: (one.kind, one.file_digest, one.size_bytes) for one in detail.artifacts},
        "lines": client.connection.get(f"/api/v1/runs/{run}/logs", Any)["lines"],
        "attempts": [(one.number, one.cause) for one in detail.attempts], "spec": detail.spec.params,
    }  # fmt: skip


def test_a_run_is_the_same_in_another_installation_and_says_that_it_is_foreign(
    here: Any, there: Any, run: str, tmp_path: Path
) -> None:
    file = tmp_path / "runs.tbx"
    with Client(here.url, here.admin) as ours, Client(there.url, there.admin) as theirs:
        done = ours.portable.export(file, run=run)
        assert (done.runs, done.size_bytes) == (1, file.stat().st_size)
        reply = theirs.portable.take(file, project="from-afar")
        (one,) = reply.runs
        assert one.original_id == run != one.id and not one.known and reply.bundle == done.digest
        assert (one.points, one.lines, one.files) == (14, 2, 3)
        before, after = everything(ours, run), everything(theirs, one.id)
        for record in (before, after):
            for line in record["lines"]:
                line.pop("id")
        assert after == before
        detail = theirs.run(one.id)
        assert detail.run.project == "from-afar" and set(detail.run.tags) == {"a", "imported"}
        assert detail.origin is not None and (detail.origin.id, detail.origin.ref) == (run, "demo#1")
        assert detail.origin.bundle == done.digest
        assert theirs.read_artifact(one.id, "a/report.html") == b"<p>hello"
        # audit events on both sides
        assert "run.exported" in {event["kind"] for event in here.json("GET", f"/api/v1/runs/{run}/events")}
        assert "run.imported" in {event["kind"] for event in there.json("GET", f"/api/v1/runs/{one.id}/events")}
        # the same once more is known, and nothing is doubled
        again = theirs.portable.take(file, project="from-afar").runs[0]
        assert again.known and again.id == one.id
        assert everything(theirs, one.id)["points"] == before["points"]


def test_the_bits_of_a_nan_are_in_the_bundle_and_the_journal_with_it(here: Any, run: str, tmp_path: Path) -> None:
    with Client(here.url, here.admin) as ours:
        ours.portable.export(tmp_path / "b.tbx", run=run)
    with (tmp_path / "b.tbx").open("rb") as file:
        reader = Reader(file)
        frames = spool.decode(reader.read(f"runs/{run}/points.tbs")).frames
        values = [struct.pack("<d", v) for f in frames for v in spool.decode_metrics(f.body).value]
        assert sorted(values) == sorted(struct.pack("<d", value) for value in VALUES * 2)
        events = [json.loads(line) for line in reader.read(f"runs/{run}/events.jsonl").splitlines()]
        assert next(one["kind"] for one in events) == "run.began" and "run.failed" in {one["kind"] for one in events}
        log = spool.decode(reader.read(f"runs/{run}/log.tbs")).frames
        assert next(line.data for f in log for line in spool.decode_lines(f.body)) == b"hello\xff\r\x00 there"


def test_a_filter_chooses_the_runs_and_files_may_stay_at_home(here: Any, there: Any, run: str, tmp_path: Path) -> None:
    other = here.json("POST", "/api/v1/outside-runs", json={"project": "demo", "name": "still on"})["id"]
    with Client(here.url, here.admin) as ours, Client(there.url, there.admin) as theirs:
        assert ours.portable.export(tmp_path / "all.tbx", filter="project = 'demo'").runs >= 2
        ours.portable.export(tmp_path / "one.tbx", run=other, artifacts=False)
        (one,) = theirs.portable.take(tmp_path / "one.tbx").runs
        assert theirs.run(one.id).run.state == "stopped"  # it goes on over there, not here
        ours.portable.export(tmp_path / "bare.tbx", run=run, artifacts=False)
        assert (tmp_path / "bare.tbx").stat().st_size < 20_000
    with zipfile.ZipFile(tmp_path / "all.tbx") as archive:
        assert len([name for name in archive.namelist() if name.startswith("blobs/")]) == 2  # equal files once
    none = here.ask("GET", "/api/v1/export", params={"filter": "project = 'nowhere'"})
    assert (none.status_code, none.json()["code"]) == (400, "export_none")


def test_a_bad_bundle_is_refused_with_its_reason_and_leaves_nothing(
    here: Any, there: Any, run: str, tmp_path: Path
) -> None:
    with Client(here.url, here.admin) as ours:
        ours.portable.export(tmp_path / "b.tbx", run=run)
    whole = (tmp_path / "b.tbx").read_bytes()
    before = there.json("GET", "/api/v1/runs")["total"]
    at = whole.index(b"x" * 1000)
    damaged = whole[:at] + b"y" + whole[at + 1 :]
    traversal = io.BytesIO(whole)
    with zipfile.ZipFile(traversal, "a") as archive:
        archive.writestr("../../etc/cron.d/x", b"x")
    for body, code in (
        (damaged, "bundle_damaged"), (whole[:-30], "bundle_not_one"), (b"", "bundle_not_one"),
        (traversal.getvalue(), "bundle_path"), (_record(whole, run, b"[]"), "bundle_record_bad"),
    ):  # fmt: skip
        answer = there.ask("POST", "/api/v1/import", content=body)
        assert (answer.json()["code"], answer.is_success) == (code, False)
    assert there.json("GET", "/api/v1/runs")["total"] == before


def _record(whole: bytes, run: str, record: bytes) -> bytes:
    """The same bundle with another record, and a manifest that agrees."""
    from trackbed.formats.bundle import Writer

    reader, out = Reader(io.BytesIO(whole)), io.BytesIO()
    writer = Writer(out)
    for name in reader.manifest.members:
        writer.add(name, [record] if name.endswith("run.json") else reader.blocks(name))
    writer.close(reader.manifest)
    return out.getvalue()


def test_a_viewer_exports_and_does_not_import(here: Any, run: str) -> None:
    viewer = here.person("vera", default="viewer")
    bundle = here.ask("GET", "/api/v1/export", params={"run": run}, token=viewer)
    assert bundle.status_code == 200
    assert here.ask("POST", "/api/v1/import", content=bundle.content, token=viewer).status_code == 403


def test_points_as_csv_and_parquet_are_the_points(here: Any, run: str, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow.parquet")
    with Client(here.url, here.admin) as ours:
        csv = ours.portable.metrics(run, tmp_path / "m.csv").read_text()
        ours.portable.metrics(run, tmp_path / "m.parquet")
    rows = [line.split(",") for line in csv.strip().splitlines()]
    assert rows[0] == ["key", "step", "time_us", "value", "rank", "attempt", "incarnation"]
    assert len(rows) == 1 + 2 * len(VALUES)
    assert sorted(float(row[3]) for row in rows[1:] if row[3] != "nan") == sorted(v for v in VALUES * 2 if v == v)
    table = arrow.read_table(tmp_path / "m.parquet").to_pydict()
    assert [str(v) for v in table["value"]] == [str(float(row[3])) for row in rows[1:]]
    assert set(table["key"]) == {"损失/x"}


def test_a_spreadsheet_runs_no_name_as_a_formula(here: Any) -> None:
    made = here.json("POST", "/api/v1/outside-runs", json={"project": "demo"})["id"]
    points = Metrics(["=2+5"], array("I", [0]), array("q", [1]), array("q", [1]), array("d", [1.0]))
    here.json("POST", f"/api/v1/runs/{made}/frames", content=frame(1, spool.METRICS, spool.encode_metrics(points)))
    assert "\n'=2+5,1," in here.ask("GET", f"/api/v1/runs/{made}/metrics.csv").text
    assert "\n=2+5,1," in here.ask("GET", f"/api/v1/runs/{made}/metrics.csv?plain=true").text


def test_the_command_line_exports_and_imports(here: Any, there: Any, run: str, tmp_path: Path) -> None:
    def cli(server: Any, *args: str) -> Any:
        env = {**os.environ, "TRACKBED_URL": server.url, "TRACKBED_TOKEN": server.admin, "TRACKBED_HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-m", "trackbed", *args, "--json"], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    made = cli(here, "export", "project = 'demo' and name = 'first'", "-o", "out.tbx")
    assert made["runs"] == 1 and (tmp_path / "out.tbx").exists()
    assert cli(there, "import", "out.tbx", "--project", "by-cli")["runs"][0]["original_id"] == run
    assert Path(tmp_path / cli(here, "export", run, "--csv")["path"]).read_text().startswith("key,step")
