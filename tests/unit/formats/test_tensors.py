"""Where a safetensors file is cut: at its tensors, or, if anything does not fit, not there."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trackbed.formats.tensors import PIECE, Stretch, header_size, round_to_bf16, rounded_places, stretches, told_size


def _header(**tensors: tuple[str, int, int]) -> bytes:
    described = {name: {"dtype": dtype, "data_offsets": [start, end]} for name, (dtype, start, end) in tensors.items()}
    text = json.dumps(described).encode()
    return struct.pack("<Q", len(text)) + text


def test_tensors_are_cut_in_pieces_with_the_width_of_their_numbers():
    header = _header(
        b=("BF16", 3 * PIECE + 400, 4 * PIECE), a=("F32", 0, 2 * PIECE + 400), c=("U8", 4 * PIECE, 4 * PIECE + 8)
    )
    size = len(header) + 4 * PIECE + 8
    assert stretches(header, size) == [
        Stretch(len(header), 1), Stretch(PIECE, 4), Stretch(PIECE, 4), Stretch(400, 4), Stretch(PIECE, 1),
        Stretch(PIECE - 400, 2), Stretch(8, 1),
    ]  # fmt: skip
    assert told_size(header) == size
    assert header_size(header[:16], size) == len(header)


@pytest.mark.parametrize("bad", [("F32", -4, 8), ("F32", 8, 4), ("F32", 0, 10**9)])
def test_offsets_that_do_not_fit_are_no_tensors(bad: tuple[str, int, int]):
    header = _header(a=bad)
    assert stretches(header, len(header) + 100) is None


def test_tensors_that_overlap_are_no_tensors():
    header = _header(a=("F32", 0, 8), b=("F32", 4, 12))
    assert stretches(header, len(header) + 12) is None


@given(head=st.binary(max_size=40), size=st.integers(0, 100))
def test_noise_never_raises(head: bytes, size: int):
    length = header_size(head, size)
    assert length is None or 10 <= length <= size
    assert stretches(head, size) is None or told_size(head) >= 0


@given(sizes=st.lists(st.integers(0, 3 * PIECE), max_size=5), tail=st.integers(0, 2 * PIECE))
def test_pieces_cover_the_file_exactly(sizes: list[int], tail: int):
    at, spans = 0, dict[str, tuple[str, int, int]]()
    for number, size in enumerate(sizes):
        spans[f"t{number}"] = ("F32", at, at + size)
        at += size
    header = _header(**spans)
    pieces = stretches(header, len(header) + at + tail)
    assert pieces is not None
    assert sum(piece.size for piece in pieces) == len(header) + at + tail
    assert all(0 < piece.size <= PIECE and piece.size % piece.width == 0 for piece in pieces)


@pytest.mark.torch
@given(numbers=st.lists(st.floats(width=32, allow_nan=False), max_size=20))
@settings(deadline=None)
def test_rounding_is_that_of_training(numbers: list[float]):
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(numbers, dtype=torch.float32)
    wanted = tensor.to(torch.bfloat16).view(torch.int16).numpy().tobytes() if numbers else b""
    assert round_to_bf16(tensor.numpy().tobytes()) == wanted


def test_a_tensor_that_looks_like_another_one_rounded_is_told_with_its_place():
    master = np.arange(1, 700_001, dtype=np.float32)
    other = master * 3
    header = _header(
        o=("F32", 0, 2_800_000),
        m=("F32", 2_800_000, 5_600_000),
        w=("BF16", 5_600_000, 7_000_000),
        z=("BF16", 7_000_000, 7_000_100),
    )
    data = header + other.tobytes() + master.tobytes() + round_to_bf16(master.tobytes()) + bytes(100)
    start = len(header)
    assert rounded_places(header, len(data), lambda at, size: data[at : at + size]) == {
        start + 5_600_000: start + 2_800_000,
        start + 5_600_000 + PIECE: start + 2_800_000 + 2 * PIECE,
    }
