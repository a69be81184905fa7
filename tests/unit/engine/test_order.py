"""Every sample once per epoch, for any number of ranks and any interruptions."""

from hypothesis import given, settings
from hypothesis import strategies as st

from trackbed.engine.data.order import Permutation, SampleOrder, share


@given(size=st.integers(1, 3000), key=st.integers(0, 2**64 - 1))
@settings(max_examples=40, deadline=None)
def test_a_permutation_takes_every_index_to_another_one(size: int, key: int) -> None:
    permute = Permutation(size, key)
    assert sorted(permute(index) for index in range(size)) == list(range(size))


def test_the_bits_of_the_permutation_are_those_of_the_page() -> None:
    """A second implementation reads docs/explanation/engine.md; these are its check values."""
    assert [SampleOrder(1000, 17).at(position) for position in (0, 1, 2, 999, 1000, 123456)] == EXPECTED


EXPECTED = [657, 274, 825, 502, 698, 4]


@given(samples=st.integers(2, 400), seed=st.integers(0, 2**63 - 1))
@settings(max_examples=30, deadline=None)
def test_epochs_hold_the_same_samples(samples: int, seed: int) -> None:
    order = SampleOrder(samples, seed)
    epochs = [[order.at(epoch * samples + index) for index in range(samples)] for epoch in range(3)]
    assert all(sorted(epoch) == list(range(samples)) for epoch in epochs)


def test_epochs_differ_in_order_and_so_do_seeds() -> None:
    order = SampleOrder(500, 3)
    first, second = ([order.at(epoch * 500 + index) for index in range(500)] for epoch in (0, 1))
    other = [SampleOrder(500, 4).at(index) for index in range(500)]
    assert first != second
    assert first != other
    assert first != list(range(500))


@given(
    samples=st.integers(3, 300),
    seed=st.integers(0, 1000),
    steps=st.integers(1, 40),
    worlds=st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=6),
    stops=st.lists(st.integers(1, 39), min_size=0, max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_ranks_of_any_number_that_come_and_go_take_each_sample_exactly_once(
    samples: int, seed: int, steps: int, worlds: list[int], stops: list[int]
) -> None:
    batch, order = 8, SampleOrder(samples, seed)
    taken: list[int] = []
    consumed = 0
    for step in range(steps):
        world = worlds[sum(stop <= step for stop in stops) % len(worlds)]  # another number of ranks after each stop
        positions = [
            position for rank in range(world) for position in share(consumed, batch=batch, rank=rank, world_size=world)
        ]
        assert sorted(positions) == list(range(consumed, consumed + batch))
        taken += [order.at(position) for position in sorted(positions)]
        consumed += batch
    assert taken == [order.at(position) for position in range(steps * batch)]
    for epoch in range(steps * batch // samples):
        assert sorted(taken[epoch * samples : (epoch + 1) * samples]) == list(range(samples))
