"""How a line of a log is shown, and which level it seems to have."""

import pytest

from trackbed.tracking.logs_lines import DEBUG, ERROR, INFO, WARNING, LevelGuess, overwritten, text_of


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        (b"10%\r50%\r100%", "100%"),
        (b"10%\r50%\r", "50%"),
        (b"\r", ""),
        (b"\x1b[31mred\x1b[0m and \x1b]0;title\x07rest", "red and rest"),
        (b"caf\xe9", "caf�"),
        ("损失 下降".encode(), "损失 下降"),
        (b"windows\r", "windows"),
        (b"nul \x00 stays", "nul \x00 stays"),
    ],
)
def test_a_line_reads_as_a_terminal_would_leave_it(data: bytes, text: str) -> None:
    assert text_of(data) == text


def test_a_traceback_is_an_error_to_its_last_line_and_no_further() -> None:
    guess = LevelGuess()
    lines = [
        b"Traceback (most recent call last):",
        b'  File "a.py", line 1',
        b"    boom()",
        b"torch.cuda.OutOfMemoryError: no",
        b"after",
    ]
    assert [guess.level("stderr", "", line) for line in lines] == [ERROR, ERROR, ERROR, ERROR, INFO]


def test_a_traceback_with_the_prefix_of_a_rank_is_one_too() -> None:
    guess = LevelGuess()
    assert guess.level("stderr", "", b"[rank0]: Traceback (most recent call last):") == ERROR
    assert guess.level("stderr", "", b"[rank0]: ValueError: x") == ERROR
    assert guess.level("stderr", "", b"progress") == INFO


@pytest.mark.parametrize(
    ("data", "level"),
    [
        (b"2026-12-01 ERROR disk", ERROR), (b"WARNING: slow", WARNING), (b"x.py:3: UserWarning: old", WARNING),
        (b"DEBUG a", DEBUG), (b"error rate 0.1", INFO), (b"no errors", INFO), (b"terror", INFO), (b"step 3 loss 0.1", INFO),
    ],
)  # fmt: skip
def test_words_decide_the_level_where_nobody_said_it(data: bytes, level: int) -> None:
    assert LevelGuess().level("stdout", "", data) == level


def test_what_the_writer_said_goes_before_words() -> None:
    assert LevelGuess().level("trackbed", "info", b"ERROR in quotes") == INFO


def test_a_redrawn_line_is_gone_when_its_stream_goes_on() -> None:
    a, b = (1, 0, "stderr"), (1, 1, "stderr")
    assert overwritten([(a, b"1%\r"), (b, b"1%\r"), (a, b"2%\r"), (a, b"done")]) == [True, False, True, False]
