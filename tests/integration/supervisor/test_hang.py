"""Ranks that hang for real: what is told of them, and how the attempt ends."""

from typing import Any

import pytest

from trackbed.formats import spool as frames
from trackbed.wire.spec import Hang

pytestmark = pytest.mark.timeout(90)


def events(server: Any, kind: str) -> list[dict[str, Any]]:
    said = [frames.decode_document(f.body) for f in server.frames if f.header.kind == frames.EVENT]
    return [one["data"] for one in said if one["kind"] == kind]


def test_a_hang_is_told_with_step_phase_and_the_stacks_of_every_rank_and_ends_the_attempt(
    bed: Any, server: Any
) -> None:
    tree = bed.tree(
        t__py="""
        import time, trackbed
        run = trackbed.init()
        def stuck_in_a_collective():
            time.sleep(600)
        def slow_to_read():
            time.sleep(600)
        for step in range(3 if run.rank else 4):
            run.log({"loss": 1.0}, step=step)
        if run.rank:
            with run.phase("data"):
                slow_to_read()
        with run.phase("communication"):
            stuck_in_a_collective()
        """
    )
    report = bed.run("python t.py", tree=tree, cards=2, hang=Hang(after_s=4.0, end=True), timeout_s=60)
    assert report.cause == "hung"
    hang = report.evidence["hang"]
    assert (hang["step"], hang["phase"], hang["waiting"], hang["behind"]) == (3, "data", [0], [1])
    assert events(server, "hang")[0]["behind"] == [1]
    told = [server.lines("trackbed", rank=rank) for rank in (0, 1)]
    assert any(b"no progress for" in line and b"at step 3" in line for line in told[0])
    assert any(b"stuck_in_a_collective" in line for line in told[0])
    assert any(b"slow_to_read" in line for line in told[1])


def test_a_program_without_the_sdk_is_told_by_what_the_kernel_knows_and_goes_on(bed: Any, server: Any) -> None:
    report = bed.run("echo begun; sleep 7; echo done; sleep 2", hang=Hang(after_s=3.0), timeout_s=60)
    assert report.cause == "done"
    assert [round(one["still_s"]) for one in events(server, "hang")] in ([3], [4])
    assert len(events(server, "hang_over")) == 1
    told = server.lines("trackbed")
    assert any(b"sleep 7" in line for line in told)
    assert any(b"state S (sleeping)" in line for line in told)


def test_a_program_with_a_handler_of_its_own_is_never_sent_our_signal(bed: Any, server: Any) -> None:
    tree = bed.tree(
        t__py="""
        import signal, time
        from trackbed.client.pulse import STACKS_SIGNAL
        assert signal.getsignal(STACKS_SIGNAL) is signal.SIG_DFL
        print("begun", flush=True)
        time.sleep(6)
        print("alive", flush=True)
        """
    )
    report = bed.run("python t.py", tree=tree, hang=Hang(after_s=3.0), timeout_s=60)
    assert report.cause == "done"
    assert server.lines()[-1] == b"alive"
