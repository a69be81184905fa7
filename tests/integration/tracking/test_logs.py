"""Log pages: exact bytes, time order, followers that miss nothing, filters, bounded patterns."""

import base64
import random
from typing import Any

import pytest
from tracking_bed import Bed, Rank

from trackbed.base.errors import BadInput
from trackbed.formats.spool import Line
from trackbed.tracking import logs
from trackbed.tracking.logs import Wanted
from trackbed.wire.series import LogPage


def page(bed: Bed, run: str, after: str = "", **wanted: Any) -> LogPage:
    return bed.db.read(lambda tx: logs.page(tx, run, Wanted(**wanted), after=after))


def texts(reply: LogPage) -> list[str]:
    return [line.text for line in reply.lines]


def test_a_line_of_a_megabyte_and_bytes_that_are_no_text_are_kept(bed: Bed) -> None:
    run = bed.run()
    large, odd = b"x" * 1_000_000, b"\xff\xfe\x00\x1b[31mred"
    bed.send(
        run,
        Rank().lines(Line(1, "stdout", "", large), Line(2, "stderr", "", odd), Line(3, "stdout", "", "损失".encode())),
    )
    first, second, third = page(bed, run).lines
    assert first.text.encode() == large and first.raw == ""
    assert base64.b64decode(second.raw) == odd and second.text == "��\x00red"
    assert third.text == "损失"


def test_large_lines_make_small_pages(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    for at in range(12):
        bed.send(run, rank.lines(Line(at, "stdout", "", b"%d" % (at % 10) * 1_000_000)))
    first = page(bed, run)
    assert 1 <= len(first.lines) <= 8 and first.more
    second = page(bed, run, first.next)
    assert len(first.lines) + len(second.lines) == 12


def test_progress_bars_show_their_last_state(bed: Bed) -> None:
    run = bed.run()
    bed.send(
        run,
        Rank().lines(
            Line(1, "stdout", "", b"1/20\r2/20\r"),
            Line(2, "stdout", "", b"19/20\r20/20"),
            Line(3, "stdout", "", b"counted"),
        ),
    )
    assert texts(page(bed, run)) == ["20/20", "counted"]


@pytest.mark.parametrize("seed", range(5))
def test_a_follower_gets_every_line_once_though_ranks_are_late(bed: Bed, seed: int) -> None:
    run, chance = bed.run(), random.Random(seed)
    ranks = [Rank(rank=number) for number in range(4)]
    clocks, sent, got, cursor = [0, 0, 0, 0], 0, list[str](), ""
    for _ in range(60):
        if chance.random() < 0.6:
            number = chance.randrange(4)
            lines = []
            for _ in range(chance.randrange(1, 6)):
                clocks[number] += chance.randrange(3)
                lines.append(Line(clocks[number], "stdout", "", b"%d" % sent))
                sent += 1
            bed.send(run, ranks[number].lines(*lines))
        else:
            reply = page(bed, run, cursor, limit=chance.randrange(1, 8))
            got += texts(reply)
            cursor = reply.next
    while True:
        reply = page(bed, run, cursor, limit=100)
        got += texts(reply)
        cursor = reply.next
        if not reply.lines and not reply.more:
            break
    assert sorted(got, key=int) == [str(number) for number in range(sent)]


def test_a_reader_from_the_start_sees_the_order_of_time(bed: Bed) -> None:
    run = bed.run()
    for number in (2, 0, 1):
        bed.send(run, Rank(rank=number).lines(*(Line(at, "stdout", "", b"%d@%d" % (number, at)) for at in range(5))))
    shown = texts(page(bed, run))
    assert shown == [f"{number}@{at}" for at in range(5) for number in range(3)]
    after = page(bed, run).lines[6].id
    assert texts(page(bed, run, after)) == shown[7:]


def test_the_tail_is_the_end_and_a_follower_goes_on_from_there(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    bed.send(run, rank.lines(*(Line(at, "stdout", "", b"%d" % at) for at in range(100))))
    last = page(bed, run, tail=3)
    assert texts(last) == ["97", "98", "99"]
    bed.send(run, rank.lines(Line(0, "stdout", "", b"late"), Line(200, "stdout", "", b"new")))
    assert texts(page(bed, run, last.next)) == ["late", "new"]


def test_levels_ranks_and_attempts_filter(bed: Bed) -> None:
    run = bed.run()
    bed.send(
        run, Rank(rank=0, attempt=1).lines(Line(1, "stdout", "", b"WARNING: slow"), Line(2, "stdout", "", b"fine"))
    )
    bed.send(run, Rank(rank=1, attempt=2).lines(Line(3, "stderr", "", b"ERROR: boom")))
    assert texts(page(bed, run, level="warning")) == ["WARNING: slow", "ERROR: boom"]
    assert texts(page(bed, run, level="error")) == ["ERROR: boom"]
    assert texts(page(bed, run, rank=0)) == ["WARNING: slow", "fine"]
    assert texts(page(bed, run, attempt=2)) == ["ERROR: boom"]
    with pytest.raises(BadInput, match="debug, info, warning, error"):
        page(bed, run, level="loud")


def test_grep_finds_text_and_patterns_and_pages_through_many_lines(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    bed.send(run, rank.lines(*(Line(at, "stdout", "", b"step %d loss %d.5" % (at, at % 97)) for at in range(12_000))))
    assert texts(page(bed, run, grep="step 11999 ")) == ["step 11999 loss 68.5"]
    found = page(bed, run, grep=r"^step \d+ loss 96\.5$", limit=50)
    rest = page(bed, run, found.next, grep=r"^step \d+ loss 96\.5$", limit=5000)
    assert len(found.lines) == 50 and found.more
    assert len(found.lines) + len(rest.lines) == 123
    assert len({line.id for line in [*found.lines, *rest.lines]}) == 123


def test_a_wrong_or_endless_pattern_is_refused_in_time(bed: Bed) -> None:
    run = bed.run()
    bed.send(run, Rank().lines(Line(1, "stdout", "", b"a" * 40 + b"!")))
    with pytest.raises(BadInput) as wrong:
        page(bed, run, grep="(")
    assert wrong.value.code == "grep_wrong"
    with pytest.raises(BadInput) as slow:
        page(bed, run, grep="(a|a)*$")
    assert slow.value.code == "grep_slow"
    with pytest.raises(BadInput) as cursor:
        page(bed, run, after="nonsense")
    assert cursor.value.code == "cursor_wrong"
