"""Which entries of the checkpoints folder count, and when."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from trackbed.supervisor.saving import QUIET_S, Arrivals, Ended, Watch, look


def watch(folder: Path) -> Watch:
    return Watch(folder, complete={}, reported={})


def names(found: list[Any]) -> list[str]:
    return [item.name for item in found]


def test_what_was_renamed_here_counts_at_once(tmp_path: Path) -> None:
    arrivals, watching = Arrivals(tmp_path), watch(tmp_path)
    (tmp_path / ".step-5").mkdir()
    (tmp_path / ".step-5" / "w").write_text("x")
    assert watching.scan(0.0, arrived=arrivals.take()) == []
    (tmp_path / ".step-5").rename(tmp_path / "step-5")
    found = watching.scan(0.2, arrived=arrivals.take())
    assert [(item.name, item.step) for item in found] == [("step-5", 5)]
    assert watching.scan(0.4, arrived=arrivals.take()) == []
    arrivals.close()


def test_a_done_beside_it_counts(tmp_path: Path) -> None:
    watching = watch(tmp_path)
    (tmp_path / "a-1").mkdir()
    (tmp_path / "a-1" / "w").write_text("x")
    assert watching.scan(0.0, arrived=set()) == []
    (tmp_path / "a-1.done").touch()
    assert names(watching.scan(0.1, arrived=set())) == ["a-1"]


def test_thirty_quiet_seconds_count_and_a_change_starts_them_anew(tmp_path: Path) -> None:
    watching = watch(tmp_path)
    (tmp_path / "17.pt").write_text("x")
    assert watching.scan(0.0, arrived=set()) == []
    (tmp_path / "17.pt").write_text("longer")
    assert watching.scan(QUIET_S - 1, arrived=set()) == []
    assert watching.scan(2 * QUIET_S - 2, arrived=set()) == []
    assert names(watching.scan(2 * QUIET_S, arrived=set())) == ["17.pt"]


def test_a_file_written_anew_under_the_same_name_counts_again(tmp_path: Path) -> None:
    watching = watch(tmp_path)
    (tmp_path / "last.pt").write_text("1")
    assert names(watching.scan(0.0, arrived={"last.pt"})) == ["last.pt"]
    (tmp_path / "last.pt").write_text("22")
    assert watching.scan(1.0, arrived=set()) == []
    assert names(watching.scan(1.0 + QUIET_S, arrived=set())) == ["last.pt"]


def test_ranks_that_ended_by_themselves_leave_complete_ones(tmp_path: Path) -> None:
    (tmp_path / "step-1").mkdir()
    (tmp_path / "step-1" / "w").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "part.tmp").write_text("x")
    assert names(watch(tmp_path).scan(0.0, arrived=set(), ended=Ended.CLEAN)) == ["step-1"]


def test_ranks_that_were_killed_may_leave_half_of_one(tmp_path: Path) -> None:
    now_ns = time.time_ns()
    for name, age_s in (("step-1", 60), ("step-2", 1)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "w").write_text("x")
        for path in (tmp_path / name / "w", tmp_path / name):
            os.utime(path, ns=(now_ns, now_ns - age_s * 10**9))
    (tmp_path / "step-2" / "w").write_text("being written")
    found = watch(tmp_path).scan(0.0, arrived=set(), ended=Ended.TORN, ended_ns=now_ns)
    assert names(found) == ["step-1"]


def test_parts_of_several_ranks_count_only_when_all_are_in(tmp_path: Path) -> None:
    watching = watch(tmp_path)
    (tmp_path / "step-3").mkdir()
    (tmp_path / "step-3" / "rank-0").write_text("x")
    (tmp_path / ".step-3.parts").mkdir()
    assert watching.scan(0.0, arrived=set()) == []
    assert watching.scan(10 * QUIET_S, arrived=set(), ended=Ended.CLEAN) == []
    (tmp_path / "step-3.done").touch()
    assert names(watching.scan(10 * QUIET_S + 1, arrived=set())) == ["step-3"]


def test_the_newest_complete_one_is_the_youngest_that_is_still_as_it_was(tmp_path: Path) -> None:
    watching = watch(tmp_path)
    for step in (1, 2, 3):
        (tmp_path / f"s-{step}").write_text("x" * step)
        os.utime(tmp_path / f"s-{step}", (step, step))
    watching.scan(0.0, arrived={"s-1", "s-2", "s-3"})
    (tmp_path / "s-3").unlink()
    newest = watching.newest()
    assert newest is not None and newest.name == "s-2"


def test_a_look_at_what_is_gone_is_nothing(tmp_path: Path) -> None:
    assert look(tmp_path / "gone") is None


SAVES = """
import os, time
from pathlib import Path
c = Path(os.environ["TRACKBED_CHECKPOINTS"])
latest = c / "latest"
print("latest", latest.resolve().name if latest.exists() else "-", flush=True)
first = int((latest / "w").read_text()) if latest.exists() else 0
for step in range(first + 1, first + 5):
    part = c / f".step-{step}"
    part.mkdir(); (part / "w").write_text(str(step)); part.rename(c / f"step-{step}")
    time.sleep(0.05)
(c / "torn.tmp").write_text("x")
time.sleep(float(os.environ.get("STAY_S", "0")))
"""


@pytest.mark.timeout(90)
def test_checkpoints_are_reported_and_the_next_attempt_finds_latest(bed: Any, server: Any) -> None:
    tree = bed.tree(t__py=SAVES)
    bed.run("python t.py", tree=tree)
    found = server.of("checkpoints")
    assert [(c["name"], c["step"]) for c in found] == [(f"step-{n}", n) for n in (1, 2, 3, 4)]
    resume = {"name": found[-1]["name"], "step": 4, "digest": found[-1]["digest"]}
    server.reports.clear()
    bed.run("python t.py", tree=tree, resume=resume, number=2, epoch=2)
    assert server.lines() == [b"latest -", b"latest step-4"]
    assert [c["step"] for c in server.of("checkpoints")] == [5, 6, 7, 8], "what was restored is not reported again"


@pytest.mark.timeout(90)
def test_only_every_nth_is_uploaded_and_the_newest_at_the_end(bed: Any, server: Any) -> None:
    attempt = bed.start("python t.py", tree=bed.tree(t__py=SAVES), checkpoint={"upload_every": 3}, env={"STAY_S": "60"})
    bed.until(lambda: [c["step"] for c in server.of("checkpoints")] == [3], attempt=attempt)
    bed.order(attempt, "pause")
    assert bed.wait(attempt).cause == "paused"
    assert [c["step"] for c in server.of("checkpoints")] == [3, 4]
    kinds = [what for what, _ in server.reports]
    assert kinds[-1] == "exit"


@pytest.mark.timeout(90)
def test_a_checkpoint_that_is_one_file_comes_back_as_a_file(bed: Any, server: Any) -> None:
    bed.run("echo 17 > $TRACKBED_CHECKPOINTS/ckpt-17.pt")
    found = server.of("checkpoints")[0]
    assert (found["name"], found["step"]) == ("ckpt-17.pt", 17)
    server.reports.clear()
    resume = {"name": found["name"], "step": 17, "digest": found["digest"]}
    bed.run("cat $TRACKBED_CHECKPOINTS/latest; ls -A $TRACKBED_CHECKPOINTS", resume=resume)
    assert server.lines() == [b"17", b"ckpt-17.pt", b"latest"]


@pytest.mark.timeout(90)
def test_parts_of_sdk_ranks_are_one_checkpoint(bed: Any, server: Any) -> None:
    tree = bed.tree(
        t__py="""
        import os, time, trackbed
        run = trackbed.init()
        folder = run.checkpoints / "step-9"
        folder.mkdir(exist_ok=True)
        time.sleep(0.5 * int(os.environ["RANK"]))
        (folder / ("rank-" + os.environ["RANK"])).write_text("x")
        run.checkpoint(folder, step=9)
        """
    )
    bed.run("python t.py", tree=tree, cards=2)
    (found,) = server.of("checkpoints")
    assert found["step"] == 9
    assert [e.path for e in bed.store.read_listing(found["digest"])] == [b"rank-0", b"rank-1"]


@pytest.mark.timeout(90)
def test_what_an_attempt_fetched_and_what_its_node_had_is_reported(bed: Any, server: Any, tmp_path: Any) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "rows").write_bytes(b"x" * 100_000)
    digest = bed.store.put_tree(tmp_path / "d").digest
    data = {"corpus": {"ref": "c@1", "digest": digest}}
    bed.run("cat $TRACKBED_DATA_CORPUS/rows | wc -c", data=data)
    (first,) = server.of("inputs")
    assert [(one["name"], one["size_bytes"], one["fetched_bytes"]) for one in first["inputs"]] == [
        ("corpus", 100_000, 100_000)
    ]
    server.reports.clear()
    bed.run("cat $TRACKBED_DATA_CORPUS/rows | wc -c", data=data, number=2, epoch=2)
    (second,) = server.of("inputs")
    assert second["inputs"][0].get("fetched_bytes", 0) == 0, "the second attempt found it on the node"
