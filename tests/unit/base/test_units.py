"""Sizes and durations as people write them."""

import pytest

from trackbed.base.units import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("40 GiB", 40 * 2**30), ("64MiB", 64 * 2**20), ("1000", 1000), ("1.5 KiB", 1536), ("2 GB", 2 * 10**9), (7, 7)],
)
def test_a_size_is_read_in_bytes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "4 parsecs", "-1 GiB", "1 2"])
def test_a_wrong_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800),
        ("12h", 43200),
        ("1h30m", 5400),
        ("45", 45),
        ("250ms", 0.25),
        ("2 d", 172800),
        (3, 3.0),
        ("5min", 300),
    ],
)
def test_a_duration_is_read_in_seconds(text: str | int, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "1x", "h", "3 m or so"])
def test_a_wrong_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_duration(text)


def test_sizes_and_durations_are_written_shortly() -> None:
    assert format_size(0) == "0 B"
    assert format_size(1536) == "1.5 KiB"
    assert format_size(3 * 2**40) == "3.0 TiB"
    assert format_duration(7.25) == "7.2s"
    assert format_duration(75) == "1m15s"
    assert format_duration(3 * 3600 + 240) == "3h04m"
    assert format_duration(2 * 86400 + 7200) == "2d2h"
