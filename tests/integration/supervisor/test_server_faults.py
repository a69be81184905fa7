"""Training never dies of us: away, broken, talking nonsense; and afterwards the record is complete."""

import json
import shutil
import time
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(90)

WORK = """
import os, time
import trackbed
run = trackbed.init()
for step in range(20):
    run.log({"loss": 1.0}, step=step)
    print("step", step, flush=True)
    time.sleep(0.05)
run.finish()
(run.output / "weight.json").write_text("{}")
"""


@pytest.mark.parametrize("mode", ["away", "broken", "garbage"])
def test_the_whole_training_passes_without_a_server_and_is_told_later(bed: Any, server: Any, mode: str) -> None:
    server.mode = mode
    attempt = bed.start("python t.py", tree=bed.tree(t__py=WORK))
    bed.until_file(attempt, "output/weight.json")
    bed.until(lambda: any((bed.folder(attempt) / "reports").glob("*-exit.json")), attempt=attempt)
    time.sleep(1.0)
    assert server.of("exit") == [] and bed.phase(attempt) == "running"
    server.mode = "ok"
    report = bed.wait(attempt)
    assert report.cause == "done" and report.lost_to_step == 19
    assert server.lines() == [f"step {n}".encode() for n in range(20)]
    assert sum(f.header.n for f in server.frames if f.header.kind == "metrics" and b"loss" in f.body) == 20
    kinds = [what for what, _ in server.reports]
    assert kinds == ["outputs", "exit"]


def test_frames_are_in_before_the_exit_is_told(bed: Any, server: Any) -> None:
    attempt = bed.start("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done")
    bed.wait(attempt)
    last_frames = max(n for n, path in enumerate(server.requests) if path.endswith("/frames"))
    exit_at = next(n for n, path in enumerate(server.requests) if path.endswith("/exit"))
    assert last_frames < exit_at
    assert len(server.lines()) == 3000


def test_the_relay_reads_for_the_ranks_and_refuses_everything_else(bed: Any, server: Any) -> None:
    tree = bed.tree(
        t__py="""
        import json, os, urllib.error, urllib.request
        url, token = os.environ["TRACKBED_URL"], os.environ["TRACKBED_TOKEN"]
        def ask(path, token=token, data=None):
            try:
                with urllib.request.urlopen(urllib.request.Request(url + path, data=data, headers={"Authorization": "Bearer " + token}), timeout=20) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as refused:
                return refused.code, json.loads(refused.read())["code"]
        print(json.dumps([ask("/api/v1/runs/r"), ask("/api/v1/runs/r", "wrong"), ask("/api/v1/runs", data=b"{}"), ask("/metrics")]), flush=True)
        """
    )
    bed.run("python t.py", tree=tree)
    read, wrong, write, other = json.loads(server.lines()[0])
    assert read == [200, '{"token": "Bearer tba_secret"}'], "under the attempt token, which the rank never sees"
    assert wrong[0] == 401 and write == [403, "relay_reads_only"] and other == [403, "relay_reads_only"]


def test_a_saved_file_is_kept_while_the_run_goes_on(bed: Any, server: Any) -> None:
    tree = bed.tree(
        t__py="""
        import time, trackbed
        run = trackbed.init()
        (run.output / "r.html").write_text("<p>")
        run.save(run.output / "r.html", kind="report")
        time.sleep(2)
        """
    )
    attempt = bed.start("python t.py", tree=tree)
    bed.until(lambda: server.of("outputs"), attempt=attempt)
    assert bed.phase(attempt) == "running"
    first = server.of("outputs")[0]
    assert first["partial"] and first["entries"][0]["path"] == "r.html" and first["entries"][0]["kind"] == "report"
    bed.wait(attempt)
    assert server.of("outputs")[-1]["entries"][0]["kind"] == "report"


def test_a_supervisor_whose_folder_was_removed_does_not_wait_for_the_server(
    bed: Any, server: Any, is_alive: Any
) -> None:
    server.mode = "away"
    attempt = bed.start("true")
    folder = bed.folder(attempt)
    bed.until(lambda: any((folder / "reports").glob("*-exit.json")), attempt=attempt)
    pid = json.loads((folder / "supervisor.json").read_text())["pid"]
    shutil.rmtree(folder)
    bed.until(lambda: not is_alive(pid))
