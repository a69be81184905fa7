"""Patterns of names: what fits, an example that always does, and patterns that cannot be read."""

import random
import time

import pytest

from trackbed.domain.naming import PatternError, read


@pytest.mark.parametrize(
    ("pattern", "fits", "not_fits"),
    [
        ("{team}-{model}-{date}", ["nlp-gpt-2026-12-01", "语言-gpt-20261201"], ["nlp-gpt", "nlp-gpt-2026-13-01", "-gpt-20261201", "nlp-gpt-20261201x"]),
        ("exp-{baseline|ablation}-{any}", ["exp-baseline-1", "exp-ablation-a-b"], ["exp-other-1", "exp-baseline-"]),
        ("{user}.{number}", ["ann.7"], ["bob.7", "ann.x", "ann.٣"]),
        ("fixed", ["fixed"], ["fixed2", ""]),
        ("{a}{b}", ["ab", "abc"], ["a", "a-b"]),
    ],
)  # fmt: skip
def test_a_name_fits_as_a_whole(pattern: str, fits: list[str], not_fits: list[str]) -> None:
    rule = read(pattern)
    assert [name for name in fits if not rule.fits(name, user="ann")] == []
    assert [name for name in not_fits if rule.fits(name, user="ann")] == []


def test_the_example_of_any_pattern_fits_it() -> None:
    dice = random.Random(7)
    holes = ["{team}", "{a-b}", "{date}", "{number}", "{any}", "{user}", "{x|y z}", "-", ".", "v"]
    for _ in range(500):
        rule = read("".join(dice.choice(holes) for _ in range(dice.randint(1, 8))))
        assert rule.fits(rule.example(user="bob"), user="bob"), rule.text


@pytest.mark.parametrize(
    ("pattern", "code"),
    [("", "empty"), ("{", "brace"), ("a}b", "brace"), ("{}", "label"), ("{1st}", "label"), ("{a|}", "choice"), ("{a}" * 21, "too_long"), ("a\n", "text")],
)  # fmt: skip
def test_a_pattern_that_cannot_be_read_is_told_by_code(pattern: str, code: str) -> None:
    with pytest.raises(PatternError) as wrong:
        read(pattern)
    assert wrong.value.code == code


def test_a_hostile_pattern_costs_no_time() -> None:
    begun = time.process_time()
    assert not read("{any}" * 20 + "!").fits("a" * 128)
    assert time.process_time() - begun < 1.0
