"""Runs that nobody submitted, on a real server: made by the sender, shipped while they train, complete exactly once."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from sdk_bed import BadServer, only_folder, program, until
from server_process import Server

from trackbed.client.config import Login
from trackbed.client.sender import sync

SERVE = """
import sys
from pathlib import Path
from trackbed.server.main import serve
from trackbed.server.settings import Settings
serve(Settings(home=Path(sys.argv[1]), port=int(sys.argv[2]), loops=False))
"""
TRAIN = """
    import math, sys, time, trackbed
    steps, pause = int(sys.argv[1]) if len(sys.argv) > 1 else {steps}, {pause}
    with trackbed.init(project="demo", name="try-1", tags=["a", "基线"], params={{"lr": 3e-4, "bad": math.nan}}) as run:
        for step in range(steps):
            run.log({{"loss": 1 / (step + 1), "损失": math.nan if step == 3 else -0.0}}, step=step)
            time.sleep(pause)
        {end}
"""


def train(
    folder: Path, server: Server, *, wait: bool = True, steps: int = 50, pause: float = 0.0, end: str = "pass"
) -> Any:
    env = {"TRACKBED_URL": server.url, "TRACKBED_TOKEN": server.admin} if server.url else {}
    return program(TRAIN.format(steps=steps, pause=pause, end=end), folder, wait=wait, **env)


def run_of(server: Server) -> dict[str, Any]:
    known = until(lambda: only_folder().known)
    return server.json("GET", f"/api/v1/runs/{known.run_id}")


def losses(server: Server, run: str, key: str = "loss") -> list[list[Any]]:
    return server.json("GET", f"/api/v1/runs/{run}/history", params={"key": key, "all_attempts": "true"})["points"]


def ended(server: Server, state: str = "finished") -> dict[str, Any]:
    return until(lambda: (found := run_of(server))["run"]["state"] == state and found)


def test_a_run_outside_is_on_the_record_with_everything_it_said(server: Server, tmp_path: Path) -> None:
    said = [
        "run.summary['best'] = 1.2", "run.define_metric('loss', goal='min')", "run.log_text('样本/one', 'hello', step=1)",
        "(run.output / 'r.html').write_text('<script>1</script>')", "run.save(run.output / 'r.html', kind='report')",
    ]  # fmt: skip
    done = train(tmp_path, server, end="; ".join(said))
    assert done.returncode == 0, done.err
    detail = ended(server)
    run = detail["run"]
    assert (run["name"], run["tags"], run["project"], run["outside"], run["cause"]) == (
        "try-1",
        ["a", "基线"],
        "demo",
        True,
        "done",
    )
    assert detail["summary"] == {"best": 1.2} and detail["metric_keys"] == ["loss", "损失"]
    points = losses(server, run["id"])
    assert [(point[0], point[2]) for point in points] == [(step, 1 / (step + 1)) for step in range(50)]
    odd = [point[2] for point in losses(server, run["id"], "损失")]
    assert odd[3] == "NaN" and math.copysign(1, odd[4]) == -1
    assert {view["path"]: view["kind"] for view in detail["artifacts"]} == {
        "texts/样本/one-1.txt": "text",
        "r.html": "report",
    }
    page = server.ask("GET", f"/api/v1/runs/{run['id']}/artifacts/content", params={"path": "r.html"})
    assert page.text == "<script>1</script>" and "sandbox" in page.headers["content-security-policy"]
    assert page.headers["content-disposition"].startswith("inline")
    shown = server.json(
        "GET",
        "/api/v1/runs",
        params={"filter": "metrics.loss < 1 and params.lr = 0.0003 and tags has '基线'", "columns": "loss,params.lr"},
    )
    assert [(one["metrics"], one["params"]) for one in shown["runs"]] == [({"loss": 0.02}, {"lr": 0.0003})]
    params = server.json("GET", f"/api/v1/runs/{run['id']}")["run"]["params"]
    assert params["lr"] == 0.0003 and params["bad"] == "NaN"


def test_nothing_that_is_said_wrongly_ends_a_program(server: Server, tmp_path: Path) -> None:
    wrong = [
        "run.save(None)", "run.save('nope')", "run.save('..')", "run.save('a\\0b')", "run.checkpoint(None, step=None)",
        "run.checkpoint('nope', step='x')", "run.log(None)", "run.log({'a': object()}, step='x')", "run.log_text(None, None)",
        "run.log_image('i', object())", "run.log_histogram('h', 'abc')", "run.log_table('t', 5)", "run.define_metric(None)",
        "run.summary[None] = object()", "run.should_stop(step=None)", "run.log({'loss': 2**80}, step=2**80)",
    ]  # fmt: skip
    done = train(tmp_path, server, steps=1, end="; ".join(wrong))
    assert done.returncode == 0, done.err
    assert "Traceback" not in done.err
    assert ended(server)["run"]["cause"] == "done"


def test_a_program_that_raises_is_failed_and_one_that_leaves_by_status_too(server: Server, tmp_path: Path) -> None:
    assert train(tmp_path, server, end="raise ValueError('boom')").returncode == 1
    detail = ended(server, "failed")
    assert detail["run"]["cause"] == "user_error" and "boom" in str(detail["run"]["reason"])


@pytest.mark.parametrize("code", ["import sys; sys.exit(3)", "1/0"])
def test_without_a_with_block_a_crash_is_not_finished_either(server: Server, tmp_path: Path, code: str) -> None:
    env = {"TRACKBED_URL": server.url, "TRACKBED_TOKEN": server.admin}
    done = program(f"import trackbed\nrun = trackbed.init()\nrun.log({{'a': 1}})\n{code}", tmp_path, **env)
    assert done.returncode != 0
    ended(server, "failed")


def test_a_killed_trainer_leaves_its_points_and_a_run_that_is_open(server: Server, tmp_path: Path) -> None:
    process = train(tmp_path, server, wait=False, steps=100_000, pause=0.01)
    run = run_of(server)["run"]["id"]
    until(lambda: len(losses(server, run)) > 20)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    until(lambda: only_folder().done)
    steps = [point[0] for point in losses(server, run)]
    assert steps == list(range(len(steps)))
    assert run_of(server)["run"]["state"] == "running", "silence ends it, not a guess"


def test_a_server_that_was_away_gets_the_whole_record_once(own_server: Server, tmp_path: Path) -> None:
    own_server.start()
    process = train(tmp_path, own_server, wait=False, steps=300, pause=0.01)
    run_of(own_server)
    own_server.stop(signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    port = own_server.url.rsplit(":", 1)[1]
    with own_server.log.open("ab") as log:
        command = [sys.executable, "-c", SERVE, str(own_server.home), port]
        own_server.process = subprocess.Popen(command, stdout=log, stderr=log)
    until(lambda: only_folder().done)
    known = only_folder().known
    assert known is not None
    assert [point[0] for point in losses(own_server, known.run_id)] == list(range(300))
    ended(own_server)


@pytest.mark.parametrize("mode", ["down", "broken", "garbage", "empty", "html", "problem"])
def test_whatever_a_server_answers_training_ends_well_and_the_record_is_complete_later(
    server: Server, bad_server: BadServer, tmp_path: Path, mode: str
) -> None:
    bad_server.mode = mode
    began = time.monotonic()
    done = program(
        TRAIN.format(steps=100, pause=0.005, end="pass"), tmp_path, TRACKBED_URL=bad_server.url, TRACKBED_TOKEN="tbp_x"
    )
    assert done.returncode == 0, done.err  # type: ignore[attr-defined]
    assert time.monotonic() - began < 20
    folder = only_folder()
    until(lambda: bad_server.asked > 1)
    until(lambda: folder.offline)
    _end_sender(folder.path)
    for _ in range(2):  # a second time changes nothing
        results = sync(login=target_login(server))
        assert all(left == 0 for _, left in results)
    assert folder.done and folder.known is not None
    points = losses(server, folder.known.run_id)
    assert [(point[0], point[2]) for point in points] == [(step, 1 / (step + 1)) for step in range(100)]


def target_login(server: Server) -> Login:
    return Login(server.url, server.admin)


def _end_sender(folder: Path) -> None:
    """End the sender of one folder: our own grandchild, found by its argument."""
    for process in psutil.process_iter(["cmdline"]):
        if str(folder) in (process.info["cmdline"] or []):
            process.kill()
            process.wait(5)


def test_without_a_server_it_says_so_once_and_sync_ships_it(server: Server, tmp_path: Path) -> None:
    done = program(TRAIN.format(steps=5, pause=0.0, end="pass"), tmp_path)
    assert done.returncode == 0
    assert done.err.count("trackbed sync") == 1, done.err  # type: ignore[attr-defined]
    ((known, left),) = sync(login=target_login(server))
    assert known is not None and left == 0
    assert len(losses(server, known.run_id)) == 5
    assert server.json("GET", f"/api/v1/runs/{known.run_id}")["run"]["state"] == "finished"


def test_a_job_of_a_stranger_cannot_be_written_to(server: Server, tmp_path: Path) -> None:
    train(tmp_path, server, steps=1)
    run = ended(server)["run"]["id"]
    stranger = server.person("eve", default="viewer")
    body = next(only_folder().path.glob("*.tbs")).read_bytes()
    answer = server.ask("POST", f"/api/v1/runs/{run}/frames", token=stranger, content=body)
    assert answer.status_code in (403, 404)


def test_frames_over_http_are_judged_one_by_one_and_nonsense_is_refused(server: Server, tmp_path: Path) -> None:
    train(tmp_path, server, steps=3)
    run = ended(server)["run"]["id"]
    body = next(only_folder().path.glob("*-cli_*.tbs")).read_bytes()
    receipt = server.json("POST", f"/api/v1/runs/{run}/frames", content=body + b"torn")
    assert receipt.get("points", 0) == 0 and receipt["duplicates"] >= 2
    assert [one["code"] for one in receipt["rejected"]] == ["bytes_lost"]
    answer = server.ask("POST", f"/api/v1/runs/{run}/frames", content=b"nonsense")
    assert (answer.status_code, answer.json()["code"]) == (400, "frames_none")


def test_a_wrong_filter_says_where_over_http(server: Server) -> None:
    answer = server.ask("GET", "/api/v1/runs", params={"filter": "metrics.loss <"})
    assert (answer.status_code, answer.json()["code"], answer.json()["params"]["position"]) == (
        400,
        "filter_ends",
        15,
    )


def test_after_finish_one_can_wait_until_everything_is_there(server: Server, tmp_path: Path) -> None:
    code = """
        import trackbed
        run = trackbed.init()
        run.log({"a": 1.0})
        run.finish()
        assert run.wait_sent(30) and run.id.startswith("run_"), run.id
        print(run.id)
    """
    done = program(code, tmp_path, TRACKBED_URL=server.url, TRACKBED_TOKEN=server.admin)
    assert done.returncode == 0, done.err  # type: ignore[attr-defined]
    assert server.json("GET", f"/api/v1/runs/{done.out.strip()}")["run"]["state"] == "finished"  # type: ignore[attr-defined]
