"""Which files are held out."""

import pytest

from trackbed.base.errors import BadInput
from trackbed.engine.data.corpus import is_held_out, split


def test_about_the_asked_share_is_held_out() -> None:
    paths = [b"pkg/module_%d.py" % number for number in range(20_000)]
    held_out = [path for path in paths if is_held_out(path, share=0.02)]
    assert 300 < len(held_out) < 500


def test_a_file_keeps_its_side_when_others_come_and_go() -> None:
    paths = [b"m%d.py" % number for number in range(500)]
    _, before = split(paths, share=0.1)
    _, after = split(paths[::2], share=0.1)
    assert set(after) == set(before) & set(paths[::2])


def test_no_file_is_on_both_sides_or_none() -> None:
    paths = [b"m%d.py" % number for number in range(50)]
    train, held_out = split(paths, share=0.3)
    assert sorted(train + held_out) == sorted(paths)


def test_a_small_corpus_still_holds_one_file_out() -> None:
    train, held_out = split([b"a.py", b"b.py"], share=0.0)
    assert (len(train), len(held_out)) == (1, 1)


def test_a_single_file_is_refused() -> None:
    with pytest.raises(BadInput):
        split([b"a.py"], share=0.02)
