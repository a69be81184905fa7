"""Tables, pictures, texts and histograms as files whose names cannot leave their folder."""

import json
import math
import struct
import zlib
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackbed.client import media


@given(st.text(max_size=40))
def test_no_name_leaves_its_folder(name: str) -> None:
    path = media.text(name, 3, "x").path
    parts = path.split("/")
    assert parts[0] == "texts" and path.endswith("-3.txt")
    assert not any(part in ("", ".", "..") for part in parts)
    assert path.isprintable() and "\0" not in path and "\\" not in path


def test_names_that_people_use_stay_readable() -> None:
    assert media.text("val/AR@100", 1, "").path == "texts/val/AR@100-1.txt"
    assert media.text("样本/第一", 1, "").path == "texts/样本/第一-1.txt"


def test_a_table_takes_lists_and_dicts_and_keeps_what_is_not_finite_as_words() -> None:
    by_lists = json.loads(media.table("t", 1, [[1, math.nan], [2, "b"]], ["n", "x"]).data)
    by_dicts = json.loads(media.table("t", 1, [{"n": 1, "x": math.nan}, {"n": 2, "x": "b"}]).data)
    assert by_lists == by_dicts == {"columns": ["n", "x"], "rows": [[1, "NaN"], [2, "b"]]}


@given(st.lists(st.floats(width=64), max_size=50), st.integers(1, 20))
def test_a_histogram_counts_every_value_once(values: list[float], bins: int) -> None:
    said = json.loads(media.histogram("h", 1, values, bins).data)
    assert len(said["counts"]) == bins and len(said["edges"]) == bins + 1
    assert sum(said["counts"]) + said["non_finite"] == len(values)


def _array(rows: Any, *shape: int) -> Any:
    return SimpleNamespace(shape=shape, tolist=lambda: rows)


def test_an_array_becomes_a_png() -> None:
    data = media.image("i", 1, _array([[[0.0, 0.5, 1.0], [1.0, 1.0, 1.0]]], 1, 2, 3)).data
    assert data.startswith(b"\x89PNG") and struct.unpack(">II", data[16:24]) == (2, 1)
    assert zlib.decompress(data[data.index(b"IDAT") + 4 : data.index(b"IEND") - 8]) == bytes(
        [0, 0, 128, 255, 255, 255, 255]
    )


def test_what_is_no_picture_is_said() -> None:
    with pytest.raises(ValueError, match="shape"):
        media.image("i", 1, _array([1, 2, 3], 3))


def test_a_sample_holds_both_sides_and_masks_what_it_was_told_to() -> None:
    inputs = {"text": "secret", "ids": [1, 2], "meta": {"text": "x", "odd": math.nan}}
    made = media.sample("pred", 7, inputs, [0.5], {"why": "nan"}, ["text"], 0)
    assert (made.path, made.kind) == ("samples/pred-7.json", "sample")
    said = json.loads(made.data)
    assert said["masked"] == ["text", "meta.text"] and b"secret" not in made.data
    assert said["inputs"]["ids"] == [1, 2] and said["inputs"]["meta"]["odd"] == "NaN"
    assert (said["outputs"], said["facts"], said["step"]) == ([0.5], {"why": "nan"}, 7)
    same = json.loads(media.sample("pred", 8, inputs, [0.5], {}, ["text"], 0).data)
    assert same["inputs"]["text"] == said["inputs"]["text"]  # equal values are seen to be equal
    assert media.sample("pred", 7, {}, {}, {}, [], 2).path == "samples/pred/rank-2-7.json"


def test_two_files_of_one_name_are_both_kept(tmp_path: Any) -> None:
    one, two = tmp_path / "a" / "x.txt", tmp_path / "b" / "x.txt"
    taken = {"x.txt": one}
    assert media.place_for(one, "", taken).as_posix() == "x.txt"
    assert media.place_for(two, "", taken).as_posix() == "b/x.txt"
    assert media.place_for(two, "kept/y.txt", taken).as_posix() == "kept/y.txt"
    for bad in ("../y", "/y", "a/../../y"):
        with pytest.raises(ValueError, match="no place"):
            media.place_for(two, bad, taken)
