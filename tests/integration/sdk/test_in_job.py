"""A rank in a job: identity, exact values, what it finds, how it ends, and what must not hurt it."""

import json
import math
import os
import signal
import time
from pathlib import Path

import pytest
from sdk_bed import job, points, program, spooled

from trackbed.formats import spool


def test_frames_say_who_wrote_them_and_values_are_exact(tmp_path: Path) -> None:
    done = program(
        """
        import math, trackbed
        with trackbed.init(params={"lr": 0.1, "new": 7}, tags=["a"]) as run:
            assert run.id == "run_0123456789abcdef" and run.in_job
            assert run.params["lr"] == 0.1 and run.params["steps"] == 5
            run.log({"损失": math.nan, "val/AR@100": -0.0}, step=3)
            run.log({"a": math.inf, "b": -math.inf, "c": 1e308, "d": 5e-324, "e": True, "f": 2**53})
            run.log({"a": 1}); run.log({"a": 1}, step=4)
            run.summary["best"] = 1.2
            run.define_metric("a", goal="min", deterministic=True)
        """,
        tmp_path,
        **job(tmp_path, RANK="3"),
    )
    assert done.returncode == 0, done.err  # type: ignore[attr-defined]
    frames = spooled(tmp_path / "control" / "spool")
    head = frames[0].header
    assert (head.run, head.attempt, head.inc, head.rank) == ("run_0123456789abcdef", 2, 1, 3)
    assert [frame.header.seq for frame in frames] == list(range(1, len(frames) + 1))
    found = points(frames)
    assert math.isnan(found[0][2]) and found[0][:2] == ("损失", 3)
    assert math.copysign(1, found[1][2]) == -1
    assert found[2:] == [
        ("a", 4, math.inf), ("b", 4, -math.inf), ("c", 4, 1e308), ("d", 4, 5e-324), ("e", 4, 1.0), ("f", 4, float(2**53)),
        ("a", 5, 1.0), ("a", 4, 1.0),
    ]  # fmt: skip
    said = {frame.header.kind: spool.decode_document(frame.body) for frame in frames if frame.header.kind != "metrics"}
    assert said["params"] == {"new": 7}
    assert said["define"] == {"key": "a", "goal": "min", "deterministic": True}
    assert "finish" not in said, "the supervisor's evidence ends a run"


def test_bad_values_are_said_once_counted_and_never_raised(tmp_path: Path) -> None:
    done = program(
        """
        import trackbed
        run = trackbed.init()
        for _ in range(5):
            run.log({"good": 1.0, "bad": "text", "none": None, "": 1.0, "nl\\n": 2.0, 3: 4.0, "big": 10**400}, step=1)
        run.log("nothing"); run.log({"a": 1}, step="x"); run.log({"a": 1}, step=2**80)
        run.summary["odd"] = object()
        run.flush()
        print(sorted(run.problems.items()))
        """,
        tmp_path,
        **job(tmp_path),
    )
    assert done.returncode == 0, done.err  # type: ignore[attr-defined]
    assert "('name_bad', 15)" in done.out and "('value_no_number', 10)" in done.out  # type: ignore[attr-defined]
    assert "('value_unreadable', 5)" in done.out and "('log_refused', 3)" in done.out  # type: ignore[attr-defined]
    assert done.err.count("trackbed: ") == 4, done.err  # type: ignore[attr-defined]
    assert points(spooled(tmp_path / "control" / "spool")) == [("good", 1, 1.0)] * 5


def test_the_callers_dict_may_change_after_the_call(tmp_path: Path) -> None:
    program(
        """
        import trackbed
        with trackbed.init() as run:
            values = {"a": 0.0}
            for step in range(100):
                values["a"] = float(step)
                run.log(values, step=step)
        """,
        tmp_path,
        **job(tmp_path),
    )
    assert points(spooled(tmp_path / "control" / "spool")) == [("a", step, float(step)) for step in range(100)]


def test_a_point_is_in_the_file_within_a_tenth_of_a_second_and_survives_kill(tmp_path: Path) -> None:
    process = program(
        """
        import time, trackbed
        run = trackbed.init()
        for step in range(1000):
            run.log({"a": float(step)}, step=step)
            print(step, flush=True)
            time.sleep(0.01)
        """,
        tmp_path,
        wait=False,
        **job(tmp_path),
    )
    assert process.stdout is not None
    last = 0
    for text in process.stdout:
        last = int(text)
        if last == 60:
            break
    time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    steps = [step for _, step, _ in points(spooled(tmp_path / "control" / "spool"))]
    assert steps == list(range(len(steps)))
    assert len(steps) > last


def test_a_forked_child_does_not_touch_its_parents_file(tmp_path: Path) -> None:
    done = program(
        """
        import os, time, trackbed
        run = trackbed.init()
        run.log({"a": 1.0}, step=1)
        child = os.fork()
        if child == 0:
            run.log({"a": 2.0}, step=2)
            run.summary["x"] = 1
            run.finish()
            os._exit(len(run.problems))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
        run.log({"a": 3.0}, step=3)
        mine = trackbed.init()
        assert mine is run
        child = os.fork()
        if child == 0:
            with trackbed.init() as own:
                own.log({"child": 1.0}, step=1)
            os._exit(0)
        os.waitpid(child, 0)
        """,
        tmp_path,
        **job(tmp_path),
    )
    assert done.returncode == 0, done.err  # type: ignore[attr-defined]
    frames = spooled(tmp_path / "control" / "spool")
    assert sorted(points(frames)) == [("a", 1, 1.0), ("a", 3, 3.0), ("child", 1, 1.0)]
    assert len({frame.header.client for frame in frames}) == 2


def test_logging_in_a_signal_handler_does_not_lock_up(tmp_path: Path) -> None:
    done = program(
        """
        import signal, time, trackbed
        run = trackbed.init()
        hits = 0
        def handler(*_):
            global hits
            hits += 1
            run.log({"signal": float(hits)}, step=hits)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
        end = time.monotonic() + 1.5
        step = 0
        while time.monotonic() < end:
            step += 1
            run.log({"loop": 1.0}, step=step)
            if step % 100 == 0:
                run.flush()
        signal.setitimer(signal.ITIMER_REAL, 0)
        run.finish()
        print(step, hits)
        """,
        tmp_path,
        **job(tmp_path),
    )
    assert done.returncode == 0, done.err  # type: ignore[attr-defined]
    loops, hits = map(int, done.out.split())  # type: ignore[attr-defined]
    found = points(spooled(tmp_path / "control" / "spool"))
    assert sum(key == "loop" for key, *_ in found) == loops
    assert sum(key == "signal" for key, *_ in found) == hits > 10


def test_threads_may_share_a_run(tmp_path: Path) -> None:
    program(
        """
        import threading, trackbed
        run = trackbed.init()
        def work(number):
            for step in range(2000):
                run.log({f"t{number}": float(step)}, step=step)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        [t.start() for t in threads]; [t.join() for t in threads]
        """,
        tmp_path,
        **job(tmp_path),
    )
    found = points(spooled(tmp_path / "control" / "spool"))
    for number in range(4):
        assert [step for key, step, _ in found if key == f"t{number}"] == list(range(2000))


def test_a_full_disk_costs_points_at_most_not_the_training(tmp_path: Path) -> None:
    done = program(
        """
        import os, time, trackbed
        run = trackbed.init()
        run.log({"a": 1.0}, step=1); run.flush()
        write, os.write = os.write, lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
        run.log({"a": 2.0}, step=2); run.flush()
        os.write = write
        run.log({"a": 3.0}, step=3)
        run.finish()
        print(run.problems)
        """,
        tmp_path,
        **job(tmp_path),
    )
    assert done.returncode == 0, done.err  # type: ignore[attr-defined]
    assert "No space left" in done.err  # type: ignore[attr-defined]
    assert points(spooled(tmp_path / "control" / "spool")) == [("a", 1, 1.0), ("a", 2, 2.0), ("a", 3, 3.0)]


def test_no_spool_at_all_costs_the_record_not_the_training(tmp_path: Path) -> None:
    env = job(tmp_path)
    (tmp_path / "control" / "spool").rmdir()
    (tmp_path / "control" / "spool").write_text("in the way")
    done = program(
        "import trackbed\nwith trackbed.init() as run: run.log({'a': 1.0})\nprint('trained')", tmp_path, **env
    )
    assert done.out == "trained\n", done.err  # type: ignore[attr-defined]


def test_files_pictures_and_checkpoints_lie_where_the_supervisor_looks(tmp_path: Path) -> None:
    done = program(
        """
        import pathlib, trackbed
        with trackbed.init() as run:
            run.log_table("val/t", [[1, 2]], columns=["a", "b"], step=4)
            run.log_histogram("h", [1.0, 2.0], step=4)
            pathlib.Path("r.html").write_text("<b>x</b>")
            run.save("r.html", kind="report")
            (run.checkpoints / "step-4").mkdir()
            (run.checkpoints / "step-4" / "w").write_text("w")
            run.checkpoint(run.checkpoints / "step-4", step=4)
            pathlib.Path("elsewhere.pt").write_text("w")
            run.checkpoint("elsewhere.pt", step=5)
            assert run.latest_checkpoint() is None
            try:
                run.data("corpus")
            except Exception as error:
                print(error)
        """,
        tmp_path,
        **job(tmp_path, PWD=str(tmp_path)),
    )
    assert done.returncode == 0, done.err  # type: ignore[attr-defined]
    assert "TRACKBED_DATA_CORPUS" in done.out  # type: ignore[attr-defined]
    said = [spool.decode_document(f.body) for f in spooled(tmp_path / "control" / "spool") if f.header.kind == "file"]
    assert [one["kind"] for one in said] == ["table", "histogram", "report"]
    assert all((tmp_path / "output" / one["path"]).is_file() for one in said)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["step-4", "step-4.done", "step-5", "step-5.done"]


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_checkpoint_of_two_ranks_exists_when_both_have_said_so(tmp_path: Path, rank: str) -> None:
    code = """
        import os, trackbed
        with trackbed.init() as run:
            entry = run.checkpoints / "step-7"
            entry.mkdir(exist_ok=True)
            (entry / os.environ["RANK"]).write_text("w")
            run.checkpoint(entry, step=7)
    """
    for at, one in enumerate((rank, "0" if rank == "1" else "1")):
        program(code, tmp_path, **job(tmp_path, RANK=one, LOCAL_RANK=one, WORLD_SIZE="2", LOCAL_WORLD_SIZE="2"))
        assert (tmp_path / "checkpoints" / "step-7.done").exists() is (at == 1)


@pytest.mark.torch
@pytest.mark.slow
def test_tensors_are_read_as_they_were_at_the_call(tmp_path: Path) -> None:
    done = program(
        """
        import torch, trackbed
        with trackbed.init() as run:
            total = torch.zeros(())
            for step in range(50):
                total += 1
                run.log({"total": total, "grad": torch.ones(1, requires_grad=True) * step, "np": total.numpy()}, step=step)
            run.log({"many": torch.ones(3)}, step=50)
            run.flush()
            assert run.problems == {"value_unreadable": 1}, run.problems
        """,
        tmp_path,
        **job(tmp_path),
    )
    assert done.returncode == 0, done.err  # type: ignore[attr-defined]
    found = points(spooled(tmp_path / "control" / "spool"))
    assert [value for key, _, value in found if key == "total"] == [float(step + 1) for step in range(50)]


def test_params_that_a_job_was_given_are_a_json_file(tmp_path: Path) -> None:
    env = job(tmp_path)
    Path(env["TRACKBED_PARAMS"]).write_text(json.dumps({"名": "值", "nested": {"a": 1}}))
    done = program("import trackbed\nwith trackbed.init() as run: print(dict(run.params))", tmp_path, **env)
    assert done.out == "{'名': '值', 'nested': {'a': 1}}\n"  # type: ignore[attr-defined]
