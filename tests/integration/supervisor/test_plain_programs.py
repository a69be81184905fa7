"""Programs that never heard of us."""

import json
import os
import stat
import sys
from typing import Any

import msgspec
import pytest

from trackbed.sources.environment import record_of

pytestmark = pytest.mark.timeout(90)


def test_a_shell_script_finds_its_names_and_leaves_outputs_and_logs(bed: Any, server: Any) -> None:
    tree = bed.tree(
        job__sh="echo hello from $RANK of $WORLD_SIZE; pwd; cp $TRACKBED_PARAMS $TRACKBED_OUTPUT/params.json\n"
    )
    report = bed.run("sh job.sh", tree=tree, params={"lr": 3e-4})
    assert report.cause == "done"
    assert [(r.rank, r.exit_code) for r in report.ranks] == [(0, 0)]
    assert server.lines()[0] == b"hello from 0 of 1"
    assert server.lines()[1].endswith(b"/work")
    outputs = server.of("outputs")[-1]
    assert [(e["path"], e.get("kind", "other")) for e in outputs["entries"]] == [("params.json", "text")]
    assert bed.store.has_tree(outputs["digest"])
    assert server.reports[-1][0] == "exit", "the exit report is the last word"
    assert any(b"system/rss_bytes" in frame.body for frame in server.frames if frame.header.kind == "metrics")


def test_two_ranks_are_told_apart_and_find_each_other(bed: Any, server: Any) -> None:
    tree = bed.tree(
        t__py="""
        import json, os
        names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "OMP_NUM_THREADS",
                 "TRACKBED_RUN", "TRACKBED_ATTEMPT", "TRACKBED_INCARNATION", "TRACKBED_NODES"]
        print(json.dumps({n: os.environ[n] for n in names} | {"port": int(os.environ["MASTER_PORT"])}))
        """
    )
    report = bed.run("python t.py", tree=tree, cards=2, cpus_per_card=3, number=4)
    assert report.cause == "done"
    said = [json.loads(server.lines(rank=rank)[0]) for rank in (0, 1)]
    assert [s["RANK"] for s in said] == ["0", "1"] == [s["LOCAL_RANK"] for s in said]
    assert {s["WORLD_SIZE"] for s in said} == {"2"} and said[0]["port"] == said[1]["port"]
    assert said[0]["OMP_NUM_THREADS"] == "3" and said[0]["TRACKBED_ATTEMPT"] == "4"


def test_a_rank_inherits_no_token_and_no_home(bed: Any, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKBED_TOKEN", "tbp_persons_own")
    monkeypatch.setenv("TRACKBED_HOME", "/nowhere")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sesame")
    bed.run("env; cat /proc/$PPID/environ | tr '\\0' '\\n' | grep tb >&2", env={"MINE": "1", "RANK": "77"})
    env = dict(line.split(b"=", 1) for line in server.lines() if b"=" in line)
    assert b"TRACKBED_HOME" not in env and b"AWS_SECRET_ACCESS_KEY" not in env
    assert env[b"TRACKBED_TOKEN"].startswith(b"tbr_") and env[b"MINE"] == b"1" and env[b"RANK"] == b"0"
    said = server.lines() + server.lines("stderr")
    assert not any(b"tbp_" in line or b"tba_" in line for line in said), "not even the supervisor was given one"


def test_process_per_node_speaks_torchruns_own_names(bed: Any, server: Any) -> None:
    bed.run("env", cards=2, launcher="process_per_node")
    env = dict(line.split(b"=", 1) for line in server.lines() if b"=" in line)
    assert env[b"PET_NPROC_PER_NODE"] == b"2" and env[b"PET_NNODES"] == b"1" and env[b"PET_NODE_RANK"] == b"0"
    assert env[b"PET_MASTER_PORT"] == env[b"MASTER_PORT"] and env[b"NNODES"] == b"1"
    assert b"RANK" not in env and b"WORLD_SIZE" not in env


def test_data_is_linked_read_only_and_shared_between_attempts(bed: Any, server: Any) -> None:
    digest = bed.tree(points__csv="1,2\n")
    data = {
        "my-points": {"ref": "points@1", "digest": digest},
        "one": {"ref": "one@1", "digest": digest, "kind": "file"},
    }
    command = "cat $TRACKBED_DATA_MY_POINTS/points.csv $TRACKBED_DATA_ONE; (echo x > $TRACKBED_DATA_ONE) || true"
    report = bed.run(command, data=data)
    assert report.cause == "done"
    assert server.lines() == [b"1,2", b"1,2"]
    place = (bed.folder(bed.started[0]) / "data" / "my-points").resolve()
    assert stat.S_IMODE((place / "points.csv").stat().st_mode) == 0o444
    if os.getuid():
        assert (place / "points.csv").read_text() == "1,2\n"


def test_a_line_of_a_megabyte_and_broken_bytes_are_kept_exactly(bed: Any, server: Any) -> None:
    tree = bed.tree(
        t__py="""
        import sys
        out = sys.stdout.buffer
        out.write(b"x" * 2**20 + b"\\n")
        out.write(b"\\xff\\xfe\\x00 broken \\xc3\\n")
        out.write(b"\\r 10%\\r 20%\\r100%\\n\\n")
        out.write(b"y" * (5 * 2**20) + b"\\nno newline at the end")
        """
    )
    bed.run("python t.py", tree=tree)
    lines = server.lines()
    assert lines[0] == b"x" * 2**20
    assert lines[1] == b"\xff\xfe\x00 broken \xc3"
    assert lines[2] == b"\r 10%\r 20%\r100%" and lines[3] == b""
    assert b"".join(lines[4:-1]) == b"y" * (5 * 2**20) and len(lines[4]) == 4 * 2**20
    assert lines[-1] == b"no newline at the end"


def test_an_exit_code_is_a_users_error_with_the_last_lines(bed: Any) -> None:
    report = bed.run("echo about to fail >&2; exit 7")
    assert report.cause == "user_error"
    assert report.evidence["exit_code"] == 7 and report.evidence["first_rank"] == 0
    assert report.evidence["last_lines"] == ["about to fail"]


def test_a_missing_program_is_a_users_error(bed: Any) -> None:
    report = bed.run("./nothing-here.sh")
    assert report.cause == "user_error" and report.evidence["exit_code"] == 127


def test_a_full_card_is_named(bed: Any) -> None:
    report = bed.run("echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB'; exit 1")
    assert report.cause == "oom_card"


def test_stage_products_are_kept_and_a_missing_one_fails(bed: Any, server: Any) -> None:
    stage = {"name": "prep", "run": "x", "produces": {"shards": "out/", "note": "note.txt"}}
    report = bed.run("mkdir out; echo 1 > out/a; echo n > $TRACKBED_OUTPUT/note.txt", stage=stage)
    assert report.cause == "done"
    products = server.of("outputs")[-1]["products"]
    assert set(products) == {"shards", "note"}
    assert [e.path for e in bed.store.read_listing(products["shards"])] == [b"a"]
    server.reports.clear()
    report = bed.run("true", stage=stage)
    assert report.cause == "user_error" and report.evidence["missing_products"] == ["shards", "note"]


def test_a_tree_that_is_not_in_the_store_is_a_storage_cause_and_starts_nothing(bed: Any, server: Any) -> None:
    report = bed.run("echo never", tree="b3:" + "0" * 64)
    assert report.cause == "storage" and report.evidence["code"] == "storage_tree_missing" and report.ranks == []
    assert server.lines() == []


def test_an_environment_that_drifted_is_named_and_an_unchanged_one_is_not(bed: Any, server: Any) -> None:
    record = msgspec.to_builtins(record_of(sys.executable))
    assert bed.run("echo fine", environment=record).cause == "done"
    server.reports.clear()
    record["packages"].append(["no-such-package", "1.0", "00"])
    report = bed.run("echo never", environment=record)
    assert report.cause == "environment" and report.evidence["code"] == "environment_drift"
    assert report.evidence["params"] == {"count": "1", "changes": "no-such-package 1.0 -> -"}
    assert server.lines() == [b"fine"]


def test_an_interpreter_that_is_gone_is_an_environment_cause(bed: Any) -> None:
    record = {"executable": "/nowhere/python", "kind": "current", "packages": [["x", "1", "00"]]}
    assert bed.run("echo never", environment=record).evidence["code"] == "environment_gone"


def test_what_a_rank_leaves_behind_is_ended_with_it(bed: Any, is_alive: Any) -> None:
    report = bed.run("setsid sleep 300 >/dev/null 2>&1 & echo $! > $TRACKBED_OUTPUT/pid; exit 0")
    assert report.cause == "done"
    assert not is_alive(int((bed.folder(bed.started[0]) / "output" / "pid").read_text()))
    assert bed.engine.confirm_gone(bed.started[0])
