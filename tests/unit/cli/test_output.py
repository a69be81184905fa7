"""What people see is aligned by what a terminal shows, and nothing that a program logged can drive the terminal."""

import pytest

from trackbed.cli import context, output
from trackbed.cli.follow import progress_line
from trackbed.wire.runs import Progress, Reason, RunView
from trackbed.wire.series import KeyInfo


@pytest.fixture(autouse=True)
def english() -> None:
    context.take(["--lang", "en"])


def test_columns_line_up_under_chinese_names(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["名称", "n", "状态"], [["损失", 1, "好"], ["loss-of-all", 22, "ok"]])
    lines = capsys.readouterr().out.splitlines()
    assert len({output.wide(line[: -len(line.split()[-1])]) for line in lines}) == 1


def test_numbers_stand_to_the_right_and_empty_columns_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["name", "cause", "size"], [["a", "", "9 B"], ["b", None, "10.5 MiB"]])
    assert capsys.readouterr().out.splitlines() == ["name      size", "a          9 B", "b     10.5 MiB"]


def test_colours_take_no_room() -> None:
    assert output.wide("demo#4  \x1b[36mRunning\x1b[0m  损失") == len("demo#4  Running  ") + 4


def test_nothing_is_cut_off(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["a"], [["x" * 500]])
    assert "x" * 500 in capsys.readouterr().out


def test_control_characters_of_others_never_reach_the_terminal() -> None:
    assert output.clean("a\x1b[2Jb\rc\x07") == "a�[2Jb�c�"
    assert output.clean("two\nlines") == "two lines"


def test_empty_facts_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    output.facts([("a", ""), ("b", None), ("c", 0)])
    assert capsys.readouterr().out == "c  0\n"


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (float("nan"), "nan"), ("Infinity", "inf"), (None, ""), (3.14159265, "3.14159")]
)
def test_numbers_take_six_digits(value: float | str | None, text: str) -> None:
    assert output.number(value) == text


def test_a_live_line_without_a_terminal_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    live = output.Live(every_s=1000)
    for step in range(50):
        live.show(f"step {step}")
    live.end()
    assert capsys.readouterr().err == "step 0\n"


def test_progress_shows_step_loss_rate_and_time_left() -> None:
    view = RunView(id="run_1", ref="demo#1", number=1, project="demo", space="default", state="running",
                   progress=Progress(step=120, steps_total=240, seconds_left=31.2))  # fmt: skip
    keys = {"loss": KeyInfo(key="loss", last=2.8133), "tokens_per_s": KeyInfo(key="tokens_per_s", last=4120.4)}
    line = progress_line(view, keys, 10)
    assert line == "demo#1  ▰▰▰▰▰▰▱▱▱▱▱▱  step 120/240  loss 2.8133  4,120 tokens/s  31s left"
    assert output.wide(line) < 80


def test_at_the_last_step_the_line_still_fits_80_columns() -> None:
    view = RunView(id="run_1", ref="demo#1", number=1, project="demo", space="default", state="running",
                   progress=Progress(step=240, steps_total=240))  # fmt: skip
    keys = {"loss": KeyInfo(key="loss", last=2.8133), "tokens_per_s": KeyInfo(key="tokens_per_s", last=4120.4)}
    line = progress_line(view, keys, 10)
    assert line.endswith("finishing") and output.wide(line) < 80


def test_before_the_first_step_the_reason_is_shown() -> None:
    view = RunView(
        id="run_1", ref="demo#1", number=1, project="demo", space="default", state="queued", reason=Reason(code="held")
    )
    line = progress_line(view, {}, 5.0)
    assert line.startswith("demo#1  Queued  Held back") and line.endswith("5s")
