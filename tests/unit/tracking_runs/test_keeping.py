"""Which checkpoints stay, by the rule alone."""

import random

from trackbed.tracking.keeping import Copy, surplus
from trackbed.wire.spec import Keep


def copies(*values: float | None, epoch: int = 1) -> list[Copy]:
    """One at each hundredth step."""
    return [
        Copy("att", f"step-{100 * at}", f"b3:{epoch}{at}", epoch, 100 * at, at, current=at == len(values), value=value)
        for at, value in enumerate(values, 1)
    ]


def steps(found: list[Copy]) -> list[int]:
    return [one.step for one in found]


def test_the_newest_stay_and_the_older_go():
    assert steps(surplus(copies(None, None, None, None), Keep(last=2))) == [100, 200]


def test_the_best_by_the_metric_stay_however_old():
    made = copies(3.0, 1.0, 2.0, 4.0, 5.0)
    assert steps(surplus(made, Keep(last=1, best=1, by="loss"))) == [100, 300, 400]
    assert steps(surplus(made, Keep(last=1, best=2, by="acc"), goal="max")) == [100, 200, 300]


def test_nothing_goes_while_the_metric_has_judged_too_few():
    assert surplus(copies(None, None, None), Keep(last=1, best=1, by="misspelt")) == []
    assert steps(surplus(copies(float("nan"), 1.0, None), Keep(last=1, best=1, by="loss"))) == [100]


def test_what_is_referred_to_and_what_the_next_attempt_starts_from_stay():
    made = copies(None, None, None)
    assert steps(surplus(made, Keep(last=1), held=frozenset({made[0].digest}))) == [200]
    back = [Copy("att", "step-50", "b3:x", 2, 50, 9, current=False), *made]
    assert 300 not in steps(surplus(back, Keep(last=1))), "the pointer stands there"


def test_a_step_that_was_saved_again_counts_once():
    again = [
        *copies(None, None),
        *(Copy("b", "step-200", "b3:again", 2, 200, 7), Copy("b", "step-300", "b3:n", 2, 300, 8)),
    ]
    assert [one.digest for one in surplus(again, Keep(last=2))] == ["b3:11"], "the older copy of 200 is current here"


def test_in_any_history_so_many_stay_as_were_asked_for():
    dice = random.Random(7)
    for _ in range(300):
        made = copies(*(dice.choice([None, dice.random()]) for _ in range(dice.randint(1, 12))))
        keep = Keep(last=dice.randint(1, 4), best=dice.randint(0, 3), by="x")
        gone = surplus(made, keep)
        left = [one for one in made if one not in gone]
        assert left[-1] is made[-1], "the newest durable one is never dropped"
        assert left[-keep.last :] == made[-keep.last :]
        judged = sorted((one for one in made if one.value is not None), key=lambda one: one.value or 0.0)
        if gone:
            assert len(left) <= keep.last + keep.best
            assert not set(judged[: keep.best]) & set(gone)
