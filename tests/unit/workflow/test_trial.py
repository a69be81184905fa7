"""What a trial is given of the data, and what its points tell of the full run."""

import pytest

from trackbed.formats.tree import Entry
from trackbed.wire.spec import RegisterRule, Resources, Spec, Stage
from trackbed.wire.trial import TrialRequest
from trackbed.workflow.slice import choose, whole_lines
from trackbed.workflow.trial import Price, forecast, full_steps, request_faults, step_seconds, trend_of, trial_spec


def file(path: str, size: int) -> Entry:
    return Entry(path=path.encode(), size=size, digest="0" * 64)  # type: ignore[arg-type]


def test_a_small_input_is_given_whole() -> None:
    entries = [file("a.bin", 10), Entry(path=b"empty", kind="d")]
    assert choose(entries, 10).whole == entries
    assert choose(entries, 0).whole == entries, "0 is all of it"


def test_every_folder_keeps_a_file_of_each_kind() -> None:
    entries = [file(f"{part}/{n:03}.bin", 100) for part in ("train", "valid") for n in range(50)]
    entries += [file("meta.json", 10), file("train/index.idx", 50)]
    chosen = choose(entries, 1000)
    names = {entry.path.decode() for entry in chosen.whole}
    assert {"meta.json", "train/index.idx", "train/000.bin", "valid/000.bin"} <= names and not chosen.cut
    assert sum(entry.size for entry in chosen.whole) <= 1000
    assert len(names) == 11, "and as many of the rest as there is room for, in turn"


def test_a_text_file_is_cut_and_any_other_only_kept_is_given_whole() -> None:
    chosen = choose([file("all.jsonl", 10_000), file("model.bin", 5_000)], 1000)
    assert [(entry.path, size) for entry, size in chosen.cut] == [(b"all.jsonl", 500)]
    assert [entry.path for entry in chosen.whole] == [b"model.bin"]
    assert whole_lines(b"one\ntwo\nthr") == b"one\ntwo\n" and whole_lines(b"one") == b"one"


def test_a_link_stays_only_where_it_leads_somewhere() -> None:
    entries = [file("a/1.bin", 600), file("a/2.bin", 600)]
    entries += [Entry(path=b"first", kind="l", target=b"a/1.bin"), Entry(path=b"second", kind="l", target=b"a/2.bin")]
    assert {entry.path for entry in choose(entries, 700).whole} == {b"a/1.bin", b"first"}


def test_a_trial_takes_one_card_and_registers_nothing() -> None:
    whole = Spec(
        name="big", resources=Resources(cards_per_node=8, nodes=4, time_limit_s=86400), register=RegisterRule(model="m"),
        stages=[Stage(name="prep", resources=Resources(cards_per_node=0)), Stage(name="train", resources=Resources(nodes=2))],
    )  # fmt: skip
    tried = trial_spec(whole, TrialRequest(steps=7, limit_s=60))
    assert (tried.resources.cards, tried.resources.time_limit_s, tried.register, tried.cache) == (1, 60, None, False)
    assert [part.resources.cards for part in tried.stages if part.resources] == [0, 1]
    assert tried.name == "big-trial" and tried.trial and tried.trial.steps == 7


def test_the_first_interval_is_left_out() -> None:
    stamps = [0, 9_000_000, 9_500_000, 10_000_000]
    assert step_seconds([0, 1, 2, 3], stamps) == [0.5, 0.5]
    assert step_seconds([0, 10, 20], [0, 1_000_000, 6_000_000]) == [0.1, 0.5], "two intervals: both count"
    assert step_seconds([5], [1]) == []


@pytest.mark.parametrize(
    ("values", "trend"),
    [([4.0, 3.0, 2.5], "falling"), ([2.0, 2.0, 2.001], "flat"), ([1.0, 1.5, 3.0], "rising"), ([1.0, float("nan")], "not_finite")],
)  # fmt: skip
def test_the_trend_of_the_loss_is_that_of_the_straight_line(values: list[float], trend: str) -> None:
    found = trend_of("loss", range(len(values)), values)
    assert found is not None and found.trend == trend


def test_the_forecast_says_how_wide_it_is_and_why() -> None:
    found = forecast([0.1] * 8 + [0.2] * 2, steps=3600, cards=1, startup_s=10, price=Price(2.0, "EUR"))
    assert found.seconds == pytest.approx(370) and found.seconds_low == pytest.approx(370)
    assert found.seconds_high == pytest.approx(730), "one step in ten took twice as long"
    assert found.cost == pytest.approx(370 / 3600 * 2) and found.currency == "EUR"
    wide = forecast([1.0] * 10, steps=100, cards=4, startup_s=0, price=None)
    assert (wide.seconds_low, wide.seconds, wide.seconds_high) == (25, 100, 100)
    assert (wide.card_hours_low * 3600, wide.card_hours * 3600) == pytest.approx((100, 400))
    assert "trial_scaled" in [one.code for one in wide.how] and wide.cost is None


def test_the_length_of_the_full_run_is_as_said_then_as_reported_then_as_a_param_is_called() -> None:
    assert full_steps(7, 8, {"steps": 9}) == 7
    assert full_steps(0, 8, {"steps": 9}) == 8
    assert full_steps(0, 0, {"max_steps": 9}) == 9
    assert full_steps(0, 0, {"steps": "9", "epochs": 3}) == 0


def test_a_trial_of_no_steps_is_refused() -> None:
    assert [fault.field for fault in request_faults(TrialRequest(steps=0, limit_s=float("nan")))] == ["trial.steps", "trial.limit_s"]  # fmt: skip
