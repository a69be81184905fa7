"""What a program does to its own folders, names and signals: the end is told, once and truly, and nothing hangs."""

import shutil
import signal
from typing import Any

import pytest

from trackbed.wire.spec import DataPin

pytestmark = pytest.mark.timeout(90)


@pytest.mark.parametrize(
    "job",
    [
        "rm -rf $TRACKBED_OUTPUT $TRACKBED_CHECKPOINTS",
        "rm -rf $TRACKBED_OUTPUT; echo one > $TRACKBED_OUTPUT",
        "rm -rf $TRACKBED_CHECKPOINTS; echo one > $TRACKBED_CHECKPOINTS",
        "rm -rf $TRACKBED_CONTROL; echo one > $TRACKBED_CONTROL; sleep 1",
        "sleep 1; rm -f $TRACKBED_CONTROL/spool/*; sleep 1",
        "cd $TRACKBED_CONTROL/spool; mkdir a.tbs; mkfifo b.tbs; head -c 99999 /dev/urandom > c.tbs; ln -s /etc/passwd d.tbs",
        'rm -rf "$PWD"',
    ],
)
def test_a_program_that_spoils_its_folders_is_done_all_the_same(bed: Any, server: Any, job: str) -> None:
    report = bed.run(job)
    assert report.cause == "done" and not report.salvaged


def test_a_file_where_the_output_folder_was_is_the_output(bed: Any, server: Any) -> None:
    bed.run("rm -rf $TRACKBED_OUTPUT; echo one > $TRACKBED_OUTPUT")
    assert [(e["path"], e["size_bytes"]) for e in server.of("outputs")[-1]["entries"]] == [("output", 4)]


def test_an_output_folder_that_leads_out_is_not_kept(bed: Any, server: Any, tmp_path: Any) -> None:
    (tmp_path / "secret").write_text("not of this run")
    report = bed.run(f"rm -rf $TRACKBED_OUTPUT; ln -s {tmp_path} $TRACKBED_OUTPUT")
    assert report.cause == "done" and report.evidence["outputs_left_out"] == ["."]
    assert server.of("outputs") == []


def test_what_no_tree_can_hold_is_left_out_by_name_and_the_rest_is_kept(bed: Any, server: Any) -> None:
    tree = bed.tree(
        t__py="""
        import os, pathlib
        out = pathlib.Path(os.environ["TRACKBED_OUTPUT"])
        for name, leads_to in {"a": "b", "b": "a", "out": "/etc/passwd", "around": "../output/kept", "in": "kept", "loop": "."}.items():
            (out / name).symlink_to(leads_to)
        os.mkfifo(out / "pipe")
        (out / "kept").write_text("kept")
        open(os.fsencode(out) + b"/\\xff\\xfe", "w").write("broken name")
        """
    )
    report = bed.run("python t.py", tree=tree)
    assert report.cause == "done" and sorted(report.evidence["outputs_left_out"]) == ["around", "out", "pipe"]
    assert {e["path"] for e in server.of("outputs")[-1]["entries"]} == {"kept", "\\xff\\xfe"}
    entries = bed.store.read_listing(server.of("outputs")[-1]["digest"])
    assert [entry.path for entry in entries] == [b"a", b"b", b"in", b"kept", b"loop", b"\xff\xfe"]


def test_checkpoints_of_any_name_end_no_supervisor(bed: Any, server: Any) -> None:
    tree = bed.tree(
        t__py="""
        import os, pathlib
        top = pathlib.Path(os.environ["TRACKBED_CHECKPOINTS"])
        for name in [b"step-99999999999999999999", "名前 7".encode(), b"\\xff-70", b"a\\nb-60"]:
            open(os.fsencode(top) + b"/" + name, "w").write("w")
        os.mkfifo(top / "pipe-50")
        (top / "out-12").symlink_to("/etc")
        """
    )
    report = bed.run("python t.py", tree=tree)
    assert report.cause == "done" and not report.salvaged
    told = {said["name"]: said["step"] for said in server.of("checkpoints")}
    assert told.pop("step-99999999999999999999") < 10, "its place in the order"
    assert told == {"名前 7": 7, "a\nb-60": 60}


def test_a_rank_starts_with_default_signals_whatever_the_server_was_started_under(bed: Any, server: Any) -> None:
    ignored = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT]  # as `nohup` and a shell's `&` do
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        attempt = bed.start("grep -E '^Sig(Ign|Blk)' /proc/self/status")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number, handler in before.items():
            signal.signal(number, handler)
    bed.wait(attempt)
    of_the_c_library = 0b11 << 31  # signals 32 and 33: nobody else can set them
    assert [int(line.split()[1], 16) & ~of_the_c_library for line in server.lines()] == [0, 0]


def test_more_than_a_thousand_reports_are_all_told_in_their_order(bed: Any, server: Any) -> None:
    tree = bed.tree(
        t__py="""
        import trackbed
        run = trackbed.init()
        for number in range(1010):
            run.log_text("t", str(number), step=number)
        """
    )
    bed.run("python t.py", tree=tree, timeout_s=80)
    told = [said["entries"][0]["path"] for said in server.of("outputs") if said.get("partial")]
    assert len(told) == len(set(told)) == 1010
    assert server.reports[-1][0] == "exit"


def test_an_attempt_without_folder_and_processes_is_seen_to_be_gone(bed: Any, server: Any) -> None:
    attempt = bed.start("sleep 60")
    bed.until(lambda: bed.rank_pids(attempt), attempt=attempt)
    aside = bed.folder(attempt).with_name("aside")
    bed.folder(attempt).rename(aside)
    assert bed.engine.observe([attempt])[0].evidence == {"folder": "missing", "alive": True}
    aside.rename(bed.folder(attempt))
    bed.engine.kill(attempt)
    bed.until(lambda: bed.engine.confirm_gone(attempt))
    shutil.rmtree(bed.folder(attempt))
    assert bed.engine.observe([attempt])[0].evidence == {"folder": "missing", "alive": False}


def test_a_command_that_no_process_can_be_given_is_the_users_fault_and_not_tried_again(bed: Any, server: Any) -> None:
    report = bed.run("true # " + "x" * 200_000)
    assert report.cause == "user_error" and report.evidence["code"] == "start_failed" and not report.salvaged
    assert "Argument list too long" in report.evidence["message"]


def test_data_that_a_program_wrote_to_is_whole_again_for_the_next(bed: Any, server: Any) -> None:
    data = {"corpus": DataPin(ref="c@1", digest=bed.tree(words__txt="as pinned", more__txt="too"), kind="folder")}
    spoil = "cd $TRACKBED_DATA_CORPUS/; chmod -R u+w .; echo spoilt > words.txt; echo new > added; rm more.txt"
    bed.run(spoil, data=data)
    server.reports.clear()
    bed.run("cd $TRACKBED_DATA_CORPUS/ && ls && cat words.txt && echo", data=data, number=2)
    assert server.lines() == [b"more.txt", b"words.txt", b"as pinned"]
