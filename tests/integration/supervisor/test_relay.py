"""The relay over real HTTP, with a server that never answers: what MLflow's clients are told, and what is left in the spool."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from trackbed.base.entropy import new_secret
from trackbed.domain.states import Cause
from trackbed.formats import spool
from trackbed.supervisor import relay_told
from trackbed.supervisor.relay import MOST_BODY_BYTES, Relay, Upstream
from trackbed.supervisor.relay_files import Files
from trackbed.supervisor.relay_mlflow import Mlflow
from trackbed.supervisor.relay_told import Spooler
from trackbed.wire.attempts import Assignment

RUN, PROJECT = "run_aaaaaaaaaaaaaaaa", "prj_1"
MLFLOW = "/api/2.0/mlflow/"
FILES = "/api/2.0/mlflow-artifacts/artifacts"


class Bench:
    """A relay on folders of its own, and somebody who talks to it."""

    def __init__(self, root: Path) -> None:
        self.root, self.output = root, root / "output"
        for name in ("spool", "output", "scratch"):
            (root / name).mkdir()
        given = Assignment(
            attempt_id="att_1", number=1, epoch=1, run_id=RUN, run_ref="demo#1", project="demo", project_id=PROJECT,
            owner="ann", params={"lr": 0.1},
        )  # fmt: skip
        self.spooler = Spooler(root / "spool", run=RUN, attempt=1)
        self.upstream = Upstream("http://127.0.0.1:9", new_secret("tba"), lambda _: None)
        self.mlflow = Mlflow(given, self.spooler, self.upstream.ask)
        self.stored: list[bytes] = []
        files = Files(RUN, self.output, root / "scratch", self.spooler, self._store)
        self.relay = Relay(self.upstream, self.mlflow, files)
        self.relay.start()
        self.http = httpx.Client(base_url=self.relay.url, timeout=20, trust_env=False)

    def _store(self, path: Path) -> tuple[str, int]:
        self.stored.append(path.read_bytes())
        return "ab" * 32, path.stat().st_size

    def ask(self, method: str, path: str, *, rank: int = 0, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.relay.secret}.{rank}"}
        return self.http.request(method, path, headers=headers, **more)

    def post(self, route: str, *, rank: int = 0, **fields: Any) -> Any:
        answer = self.ask("POST", MLFLOW + route, rank=rank, json=fields)
        return answer.json() if answer.is_success else (answer.status_code, answer.json()["error_code"])

    def frames(self) -> list[spool.Frame]:
        files = sorted((self.root / "spool").glob("*.tbs"))
        return [frame for path in files for frame in spool.decode(path.read_bytes()).frames]

    def of(self, kind: str, run: str = RUN) -> list[Any]:
        return [
            spool.decode_document(frame.body)
            for frame in self.frames()
            if frame.header.kind == kind and frame.header.run == run
        ]

    def close(self) -> None:
        self.http.close()
        self.relay.close()
        self.spooler.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.close()


def point(key: str, value: Any, step: int = 0, ts: int = 1000) -> dict[str, Any]:
    return {"key": key, "value": value, "step": step, "timestamp": ts}


def test_only_the_secret_of_the_attempt_opens_it(bench: Bench) -> None:
    for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer {bench.relay.secret}x"}):
        answer = bench.http.get(f"{MLFLOW}runs/get?run_id={RUN}", headers=header)
        assert (answer.status_code, answer.json()["error_code"]) == (401, "UNAUTHENTICATED")
    assert bench.ask("GET", f"{MLFLOW}runs/get?run_id={RUN}", rank=3).status_code == 200


def test_every_experiment_name_means_the_project_of_the_job(bench: Bench) -> None:
    found = bench.ask("GET", f"{MLFLOW}experiments/get-by-name?experiment_name=any%20name").json()["experiment"]
    assert (found["experiment_id"], found["name"], found["lifecycle_stage"]) == (PROJECT, "demo", "active")
    assert bench.post("experiments/create", name="x") == {"experiment_id": PROJECT}
    assert bench.ask("GET", f"{MLFLOW}experiments/get?experiment_id=0").json()["experiment"]["experiment_id"] == PROJECT


def test_the_first_run_of_each_rank_is_the_job_s_own_and_a_later_one_a_child(bench: Bench) -> None:
    first = bench.post("runs/create", run_name="a")["run"]["info"]
    other_rank = bench.post("runs/create", rank=1, run_name="b")["run"]["info"]
    second = bench.post("runs/create", run_name="c")["run"]
    assert first["run_id"] == other_rank["run_id"] == RUN
    assert second["info"]["run_id"] != RUN
    assert {"key": "mlflow.parentRunId", "value": RUN} in second["data"]["tags"]


def test_a_nested_run_is_a_child_even_when_it_is_the_first_that_is_made(bench: Bench) -> None:
    tags = [{"key": "mlflow.parentRunId", "value": RUN}]
    assert bench.post("runs/create", tags=tags)["run"]["info"]["run_id"] != RUN
    assert bench.post("runs/create")["run"]["info"]["run_id"] == RUN


def test_who_took_up_the_job_s_run_by_its_id_makes_children(bench: Bench) -> None:
    bench.post("runs/update", run_id=RUN, status="RUNNING")
    assert bench.post("runs/create")["run"]["info"]["run_id"] != RUN


def test_what_is_logged_is_in_the_spool_before_the_answer_and_can_be_read_back(bench: Bench) -> None:
    assert bench.post("runs/log-metric", run_id=RUN, **point("loss", 2.0, 1)) == {}
    batch = [point("loss", 5.0, 1), point("loss", 4.0, 1), point("odd", "NaN"), point("big", "Infinity")]
    assert bench.post("runs/log-batch", run_id=RUN, metrics=batch, params=[{"key": "depth", "value": "4"}]) == {}
    said = [spool.decode_metrics(frame.body) for frame in bench.frames() if frame.header.kind == spool.METRICS]
    assert [list(one.value)[:2] for one in said] == [[2.0], [5.0, 4.0]]
    assert all(frame.header.client.startswith("cli_mlflow") for frame in bench.frames())
    assert bench.of(spool.PARAMS) == [{"depth": 4}]
    data = bench.ask("GET", f"{MLFLOW}runs/get?run_id={RUN}").json()["run"]["data"]
    assert {one["key"]: one["value"] for one in data["metrics"]} == {
        "loss": 5.0, "odd": "NaN", "big": 1.7976931348623157e308
    }  # fmt: skip
    assert {one["key"]: one["value"] for one in data["params"]} == {"lr": "0.1", "depth": "4"}


def test_a_bad_entry_refuses_the_whole_request_as_mlflow_does(bench: Bench) -> None:
    good = [point("a", 1.0)]
    assert bench.post("runs/log-batch", run_id=RUN, metrics=[*good, point("b", "no number")])[1] == (
        "INVALID_PARAMETER_VALUE"
    )
    assert bench.post("runs/log-batch", run_id=RUN, metrics=good, params=[{"key": "lr", "value": "0.2"}])[1] == (
        "INVALID_PARAMETER_VALUE"
    )
    assert bench.post("runs/log-parameter", run_id=RUN, key="lr", value="0.1") == {}
    assert bench.post("runs/log-metric", run_id=RUN, **point("x" * 501, 1.0))[0] == 400
    assert bench.ask("POST", MLFLOW + "runs/log-batch", content=b"{").json()["error_code"] == "INVALID_PARAMETER_VALUE"
    assert bench.frames() == []


def test_the_end_that_a_client_says_is_an_event_and_not_the_end(bench: Bench) -> None:
    assert bench.post("runs/update", run_id=RUN, status="FINISHED", end_time=5)["run_info"]["status"] == "RUNNING"
    assert bench.of(spool.MLFLOW) == [{"do": "runs/update", "body": {"status": "FINISHED", "end_time": 5}}]
    assert bench.post("runs/log-metric", run_id=RUN, **point("after", 1.0)) == {}
    assert bench.post("runs/update", run_id=RUN, status="ASLEEP")[1] == "INVALID_PARAMETER_VALUE"


def test_a_child_that_nobody_ended_ends_with_its_job(bench: Bench) -> None:
    bench.post("runs/create")
    one, two = (bench.post("runs/create")["run"]["info"]["run_id"] for _ in range(2))
    bench.post("runs/update", run_id=one, status="FAILED")
    bench.mlflow.end_children(Cause.DONE)
    assert [one["body"]["status"] for one in bench.of(spool.MLFLOW, two) if one["do"] == "runs/update"] == ["FINISHED"]
    assert [said["body"]["status"] for said in bench.of(spool.MLFLOW, one) if said["do"] == "runs/update"] == ["FAILED"]


def test_artifacts_of_the_job_lie_below_its_output(bench: Bench) -> None:
    at = f"{FILES}/{PROJECT}/{RUN}/artifacts"
    assert bench.ask("PUT", f"{at}/a/b.png", content=b"\x89PNG\r\n\x1a\nrest").status_code == 200
    assert (
        bench.ask("PUT", f"{at}/empty.txt", content=iter([])).status_code == 200
    )  # in chunks, of which there are none
    assert bench.ask("PUT", f"{at}/big.bin", content=(b"x" * 70_000 for _ in range(30))).status_code == 200
    assert (bench.output / "a/b.png").read_bytes() == b"\x89PNG\r\n\x1a\nrest"
    assert (bench.output / "big.bin").stat().st_size == 2_100_000
    kinds = {one["path"]: one["kind"] for one in bench.of(spool.FILE)}
    assert kinds["a/b.png"] == "image"
    listed = bench.ask("GET", f"{FILES}?path={PROJECT}/{RUN}/artifacts").json()["files"]
    assert [(one["path"], one["is_dir"]) for one in listed] == [("a", True), ("big.bin", False), ("empty.txt", False)]
    whole = bench.ask("GET", f"{MLFLOW}artifacts/list?run_id={RUN}&path=a").json()["files"]
    assert whole == [{"path": "a/b.png", "is_dir": False, "file_size": 12}]
    assert bench.ask("GET", f"{at}/a/b.png").content == b"\x89PNG\r\n\x1a\nrest"
    assert list((bench.root / "scratch").iterdir()) == []


@pytest.mark.parametrize("path", ["../x", "a/../../x", "a//b", "a/%2e%2e/%2e%2e/x", "%00", "a%5Cb", ""])
def test_a_path_that_leads_out_is_refused(bench: Bench, path: str) -> None:
    host = bench.relay.url.removeprefix("http://")
    import http.client

    connection = http.client.HTTPConnection(host)  # httpx would make the path straight
    connection.request(
        "PUT", f"{FILES}/{PROJECT}/{RUN}/artifacts/{path}", body=b"x",
        headers={"Authorization": f"Bearer {bench.relay.secret}"},
    )  # fmt: skip
    assert connection.getresponse().status == 400
    connection.close()
    assert [path for path in bench.root.rglob("*") if path.is_file()] == []


def test_a_link_that_leads_out_of_the_output_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (bench.output / "link").symlink_to(outside)
    at = f"{FILES}/{PROJECT}/{RUN}/artifacts/link"
    assert bench.ask("PUT", f"{at}/new.txt", content=b"x").status_code == 400
    assert bench.ask("GET", f"{at}/secret.txt").status_code == 503  # not here; the server may know it
    assert sorted(path.name for path in outside.iterdir()) == ["secret.txt"]


def test_an_artifact_of_a_child_goes_into_the_store_with_its_digest(bench: Bench) -> None:
    bench.post("runs/create")
    child = bench.post("runs/create")["run"]["info"]["run_id"]
    assert bench.ask("PUT", f"{FILES}/{PROJECT}/{child}/artifacts/c.txt", content=b"of the child").status_code == 200
    assert bench.stored == [b"of the child"]
    assert bench.of(spool.FILE, child) == [{"path": "c.txt", "kind": "text", "digest": "ab" * 32, "size": 12}]
    assert list(bench.output.iterdir()) == []


def test_what_only_the_server_knows_is_answered_503_while_it_is_away(bench: Bench) -> None:
    assert bench.post("runs/search", experiment_ids=[PROJECT]) == (503, "TEMPORARILY_UNAVAILABLE")
    assert bench.post("runs/log-metric", run_id="run_of_others", **point("a", 1.0))[0] == 503
    assert bench.ask("GET", "/api/v1/runs").json()["code"] == "relay_server_away"
    assert bench.ask("POST", "/api/v1/runs", json={}).json()["code"] == "relay_reads_only"


def test_a_request_of_any_size_does_not_fill_the_memory(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    large = bench.ask("POST", MLFLOW + "runs/log-batch", content=iter([b" " * 2**20] * (MOST_BODY_BYTES // 2**20 + 1)))
    assert large.status_code == 413
    monkeypatch.setattr(relay_told, "MOST_REMEMBERED", 10)
    for start in range(0, 100, 20):
        bench.post("runs/log-batch", run_id=RUN, metrics=[point(f"m{at}", 1.0) for at in range(start, start + 20)])
    assert len(bench.mlflow.own.latest) == 10
    assert sum(len(spool.decode_metrics(f.body).key) for f in bench.frames()) == 100  # nothing of it is lost


def test_few_spool_files_stay_open_whatever_the_number_of_children(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_told, "OPEN_FILES", 3)
    bench.post("runs/create")
    children = [bench.post("runs/create")["run"]["info"]["run_id"] for _ in range(10)]
    for child in children:
        bench.post("runs/log-metric", run_id=child, **point("m", 1.0))
    assert len(bench.spooler._open) <= 3
    assert {frame.header.run for frame in bench.frames()} == {RUN, *children}
    assert len({(frame.header.client, frame.header.seq) for frame in bench.frames()}) == len(bench.frames())


def test_many_threads_lose_and_double_nothing(bench: Bench) -> None:
    def log(thread: int) -> None:
        for step in range(50):
            bench.post("runs/log-metric", run_id=RUN, **point("m", thread, step))

    threads = [threading.Thread(target=log, args=(one,)) for one in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    said = [spool.decode_metrics(frame.body) for frame in bench.frames()]
    assert sorted((one.step[0], one.value[0]) for one in said) == sorted(
        (step, float(thread)) for step in range(50) for thread in range(8)
    )
