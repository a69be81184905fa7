"""Lines out of chunks."""

from hypothesis import given
from hypothesis import strategies as st

from trackbed.formats.spool import Line
from trackbed.supervisor.capture import MAX_LINE_BYTES, REDRAWN_S, Splitter, readable


def split(*chunks: bytes) -> list[bytes]:
    splitter = Splitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk, 0.0)]
    return lines + splitter.end()


@given(st.lists(st.binary(max_size=40), max_size=12))
def test_however_it_is_cut_the_same_lines_come_out(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    assert split(*chunks) == split(whole)
    assert b"\n".join(split(whole)) + (b"\n" if whole.endswith(b"\n") else b"") == whole


def test_carriage_returns_and_broken_bytes_stay() -> None:
    assert split(b"\r 1%\r 2%\r\n\xff\xfe\x00") == [b"\r 1%\r 2%\r", b"\xff\xfe\x00"]


def test_a_line_longer_than_the_limit_goes_on_in_the_next() -> None:
    lines = split(b"x" * (2 * MAX_LINE_BYTES + 3), b"\nlast")
    assert [len(line) for line in lines] == [MAX_LINE_BYTES, MAX_LINE_BYTES, 3, 4]


def test_a_progress_bar_without_an_end_is_shown_now_and_then() -> None:
    splitter = Splitter()
    splitter.feed(b"\r 1%", 0.0)
    assert splitter.redrawn(0.5) == []
    splitter.feed(b"\r 2%\r 3%", 1.0)
    assert splitter.redrawn(REDRAWN_S) == [b"\r 1%\r 2%\r"]
    assert splitter.redrawn(REDRAWN_S) == []
    assert splitter.feed(b"\n", 9.0) == [b" 3%"]


def test_a_windows_line_end_is_not_taken_for_a_progress_bar() -> None:
    splitter = Splitter()
    splitter.feed(b"one\r", 0.0)
    assert splitter.redrawn(10.0) == []
    assert splitter.feed(b"\n", 10.0) == [b"one\r"]


def test_evidence_for_people_shows_the_last_state_and_says_what_it_cut() -> None:
    lines = [Line(0, "stdout", "", data) for data in (b"\r1%\r2%\r", b"\xffbad", b"y" * 5000)]
    shown = readable(lines)
    assert shown[:2] == ["2%", "\ufffdbad"]
    assert shown[2].endswith("(+904 bytes)")
