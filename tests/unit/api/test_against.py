"""The older run of a pair gets the new one's conditions and keeps what is judged."""

from trackbed.client.against import under
from trackbed.wire.spec import DataPin, FromPin, Resources, Spec


def test_the_older_run_takes_data_seeds_and_cards_and_keeps_code_params_and_origin() -> None:
    new = Spec(
        project="two", run="python new.py", seed=7, params={"lr": 2}, resources=Resources(cards_per_node=4), matrix={"seed": [1, 2]},
        data={"corpus": DataPin(ref="corpus@latest", dataset="corpus", version=3, digest="b3:new"), "extra": DataPin(ref="e@1")},
    )  # fmt: skip
    old = Spec(
        project="one", run="python old.py", seed=1, params={"lr": 1}, tags=["matrix:one#3"],
        from_=FromPin(kind="model", ref="m@1"), env={"A": "1"},
        data={"corpus": DataPin(ref="corpus@b3:old", dataset="corpus", version=1, digest="b3:old"), "own": DataPin(ref="own@1")},
    )  # fmt: skip
    made = under(new, old)
    assert (made.project, made.seed, made.matrix, made.resources.cards) == ("two", 7, {"seed": [1, 2]}, 4)
    assert (made.data["corpus"].ref, made.data["corpus"].digest) == ("corpus@b3:new", "b3:new")
    assert set(made.data) == {"corpus", "own"}
    assert (made.run, made.params, made.from_, made.env, made.tags) == (
        "python old.py",
        {"lr": 1},
        old.from_,
        {"A": "1"},
        [],
    )
