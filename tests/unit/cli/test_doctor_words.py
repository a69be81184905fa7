"""What a look measured is shown as a person reads it."""

import pytest

from trackbed.cli.doctor import measured


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [(6.586e10, "B", "61.3 GiB"), (4.768e-07, "s", "0 s"), (88.0, "packages", "88 packages"), (1.94, "ms", "1.94 ms")],
)
def test_a_measured_value_reads_well(value: float, unit: str, shown: str) -> None:
    assert measured(value, unit) == shown
