"""The bytes of the spool: what goes in comes out, whatever is torn off or damaged."""

import math
import struct
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackbed.formats import spool
from trackbed.formats.spool import Header, Line, Metrics

MLFLOW_SAMPLE = Path(__file__).parents[1] / "formats" / "samples" / "spool-v1-mlflow.tbs"
SAMPLE = Path(__file__).parents[1] / "formats" / "samples" / "spool-v1.tbs"
I64 = st.integers(-(2**63), 2**63 - 1)


def frame(seq: int, body: bytes = b"\x80", kind: str = "params") -> bytes:
    return spool.encode(Header(kind=kind, client="cli_a", seq=seq), body)


def sequences(decoded: spool.Decoded) -> list[int]:
    return [found.header.seq for found in decoded.frames]


@given(st.lists(st.tuples(st.sampled_from(["loss", "损失", "val/AR@100"]), I64, I64, st.floats(width=64)), max_size=40))
def test_points_are_bit_for_bit_what_was_put_in(points: list[tuple[str, int, int, float]]) -> None:
    columns = spool.new_metrics()
    columns.keys.extend(["loss", "损失", "val/AR@100"])
    for key, step, ts, value in points:
        columns.key.append(columns.keys.index(key))
        columns.step.append(step)
        columns.ts.append(ts)
        columns.value.append(value)
    read = spool.decode_metrics(spool.encode_metrics(columns))
    assert read.keys == columns.keys
    assert (read.key, read.step, read.ts) == (columns.key, columns.step, columns.ts)
    assert read.value.tobytes() == columns.value.tobytes()


@given(st.lists(st.binary(max_size=60), max_size=8), st.data())
def test_a_torn_tail_costs_its_own_frame_only(bodies: list[bytes], data: st.DataObject) -> None:
    parts = [frame(seq, body) for seq, body in enumerate(bodies, 1)]
    whole = b"".join(parts)
    cut = data.draw(st.integers(0, len(whole)))
    kept = sum(1 for index in range(len(parts)) if sum(map(len, parts[: index + 1])) <= cut)
    final = spool.decode(whole[:cut])
    assert sequences(final) == list(range(1, kept + 1))
    assert final.used == cut and final.lost == cut - sum(map(len, parts[:kept]))
    growing = spool.decode(whole[:cut], final=False)
    assert sequences(growing) == sequences(final)
    rest = spool.decode(whole[growing.used :], final=False)
    assert sequences(growing) + sequences(rest) == list(range(1, len(parts) + 1)), "the rest is read when it is there"
    assert growing.lost == 0


@given(st.integers(2, 6), st.data())
def test_a_flipped_byte_costs_its_own_frame_only(count: int, data: st.DataObject) -> None:
    parts = [frame(seq, bytes(range(seq * 9))) for seq in range(1, count + 1)]
    hit = data.draw(st.integers(0, count - 1))
    position = data.draw(st.integers(0, len(parts[hit]) - 1))
    broken = bytearray(parts[hit])
    broken[position] ^= data.draw(st.integers(1, 255))
    read = spool.decode(b"".join([*parts[:hit], bytes(broken), *parts[hit + 1 :]]))
    assert sequences(read) == [seq for seq in range(1, count + 1) if seq != hit + 1]
    assert read.lost == len(broken)


@given(st.binary(max_size=200))
def test_garbage_never_raises_and_all_of_it_is_counted(garbage: bytes) -> None:
    read = spool.decode(garbage + frame(1) + garbage)
    assert 1 in sequences(read)
    assert read.used == 2 * len(garbage) + len(frame(1))


def test_a_frame_of_a_newer_version_is_skipped_whole() -> None:
    newer = spool.encode(Header(kind="params", client="cli_a", seq=1, v=2), b"TBF1TBF1")
    read = spool.decode(newer + frame(2))
    assert sequences(read) == [2] and read.lost == len(newer)


def test_a_body_over_the_limit_is_refused_before_it_is_written() -> None:
    with pytest.raises(ValueError, match="limits"):
        spool.encode(Header(kind="log", client="cli_a", seq=1), bytes(spool.MAX_BODY_BYTES + 1))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\x80",
        spool.encode_document({"keys": [], "key": b"1", "step": b"", "ts": b"", "value": b""}),
        spool.encode_document({"keys": ["a"], "key": b"\0\0\0\0", "step": b"", "ts": b"", "value": b""}),
        spool.encode_metrics(Metrics(["a"], array("I", [1]), array("q", [1]), array("q", [1]), array("d", [1.0]))),
    ],
)
def test_a_broken_metrics_body_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):
        spool.decode_metrics(body)


def test_log_lines_keep_bytes_that_are_not_utf_8() -> None:
    lines = [Line(1, "stdout", "", b"\xff\xfe\r\x00"), Line(2, "stderr", "error", "损失".encode())]
    assert spool.decode_lines(spool.encode_lines(lines)) == lines


def test_the_kept_sample_of_version_1_still_opens() -> None:
    """docs/formats/spool.md describes this file to the byte; it is never written again."""
    read = spool.decode(SAMPLE.read_bytes())
    assert [found.header.kind for found in read.frames] == [
        "metrics", "params", "tags", "define", "summary", "log", "event", "file", "finish",
    ]  # fmt: skip
    assert read.lost == 21, "a torn tail"
    head = read.frames[0].header
    assert (head.run, head.attempt, head.inc, head.rank, head.client, head.seq, head.ts, head.n) == (
        "run_0123456789abcdef", 2, 1, 3, "cli_0123456789abcdef", 1, 1_790_000_000_000_000, 5,
    )  # fmt: skip
    points = spool.decode_metrics(read.frames[0].body)
    assert points.keys == ["loss", "val/AR@100", "损失"]
    values = list(points.value)
    assert math.isnan(values[0]) and values[1:3] == [math.inf, -math.inf] and values[4] == 1e308
    assert struct.pack("<d", values[3]) == struct.pack("<d", -0.0)
    assert list(points.step) == [0, 1, 1, -(2**63), 2**63 - 1]
    assert spool.decode_lines(read.frames[5].body)[0].data == b"50%\r100% \xff"


def test_the_kept_sample_of_a_request_of_mlflow_reads_for_ever() -> None:
    read = spool.decode(MLFLOW_SAMPLE.read_bytes())
    (one,) = read.frames
    assert (one.header.kind, one.header.client, one.header.seq, read.lost) == (spool.MLFLOW, "cli_mlflow0a1b2c", 1, 0)
    said = {"do": "runs/set-tags", "body": {"tags": [{"key": "team", "value": "语言"}]}}
    assert spool.decode_document(one.body) == said
