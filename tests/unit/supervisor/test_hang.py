"""When nothing has moved for too long, judged without a clock."""

from trackbed.supervisor.hang import Seen, Stillness, headline, report


def steps(*values: int, phases: tuple[str, ...] = ()) -> Seen:
    return Seen(dict(enumerate(values)), dict(enumerate(phases)))


def test_a_stated_time_without_a_step_is_a_hang_told_once_and_over_with_the_next_step() -> None:
    still = Stillness(after_s=60.0)
    assert still.look(steps(1), 0.0) == ""
    assert still.look(steps(2), 10.0) == ""
    assert still.look(steps(2), 69.0) == ""
    assert still.look(steps(2), 70.0) == "hung"
    assert still.look(steps(2), 500.0) == ""
    assert still.look(steps(3), 501.0) == "moved"
    assert still.look(steps(3), 561.0) == "hung"


def test_a_stated_time_also_holds_before_the_first_sign_of_life() -> None:
    still = Stillness(after_s=60.0)
    assert still.look(Seen(), 0.0) == ""
    assert still.look(Seen(), 60.0) == "hung"


def test_without_a_stated_time_the_programs_own_pace_decides() -> None:
    still, now_s = Stillness(), 0.0
    for step in range(20):
        now_s += 60.0
        assert still.look(steps(step), now_s) == ""
    assert still.look(steps(19), now_s + 1199.0) == ""
    assert still.look(steps(19), now_s + 1200.0) == "hung"


def test_a_program_whose_pace_nobody_knows_never_hangs_unasked() -> None:
    still = Stillness()
    assert still.look(Seen(), 0.0) == ""
    assert still.look(Seen(), 1e6) == ""
    assert still.look(steps(1), 1e6 + 1) == ""
    assert still.look(steps(1), 2e6) == ""


def test_a_pause_as_long_as_one_before_is_no_hang() -> None:
    still, now_s = Stillness(), 0.0
    for step in range(20):
        now_s += 1000.0 if step == 10 else 1.0
        still.look(steps(step), now_s)
    assert still.look(steps(19), now_s + 2900.0) == ""
    assert still.look(steps(19), now_s + 3001.0) == "hung"


def test_output_and_checkpoints_are_progress_of_a_program_that_reports_no_steps() -> None:
    still = Stillness(after_s=60.0)
    assert still.look(Seen(output=1), 0.0) == ""
    assert still.look(Seen(output=2), 50.0) == ""
    assert still.look(Seen(output=2, files_ns=5), 100.0) == ""
    assert still.look(Seen(output=2, files_ns=5), 160.0) == "hung"


def test_chatter_is_no_progress_of_a_program_that_reports_steps() -> None:
    still = Stillness(after_s=60.0)
    still.look(steps(5), 0.0)
    assert still.look(Seen({0: 5}, {}, output=100), 60.0) == "hung"


def test_one_rank_that_moves_is_progress() -> None:
    still = Stillness(after_s=60.0)
    still.look(steps(5, 5), 0.0)
    assert still.look(steps(5, 6), 59.0) == ""
    assert still.look(steps(5, 6), 61.0) == ""


def test_the_report_names_the_step_the_phase_and_who_waits_for_whom() -> None:
    data = report(steps(41, 40, 41, phases=("communication", "data", "communication")), 612.34)
    assert data == {"still_s": 612.3, "step": 41, "phase": "data", "waiting": [0, 2], "behind": [1]}
    assert headline(data) == "no progress for 612.3 s, at step 41; phase data; behind: ranks 1; waiting: ranks 0, 2"
    data = report(steps(7, 7, phases=("communication", "save")), 60.0)
    assert (data["behind"], data["waiting"], data["phase"]) == ([1], [0], "save")
    assert report(Seen(), 60.0) == {"still_s": 60.0, "step": 0, "phase": "", "waiting": [], "behind": []}
