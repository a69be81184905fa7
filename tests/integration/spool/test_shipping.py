"""The sender's half of the spool: in order, exactly once, patient with any server, honest about what is torn."""

import os
from array import array
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trackbed.client import sender
from trackbed.client.sender import Shipper
from trackbed.client.spool import Writer
from trackbed.formats import spool
from trackbed.formats.spool import Line, Metrics
from trackbed.wire.series import FramesReceipt


class Server:
    """Keeps frames exactly once; fails on demand, before or after it has kept them."""

    def __init__(self) -> None:
        self.kept: list[spool.Frame] = []
        self.marks: dict[str, int] = {}
        self.posts: list[int] = []
        self.faults: list[str] = []

    def post(self, body: bytes) -> FramesReceipt:
        self.posts.append(len(body))
        fault = self.faults.pop(0) if self.faults else "ok"
        if fault == "down":
            raise ConnectionError("down")
        read = spool.decode(body)
        assert read.lost == 0
        for frame in read.frames:
            if frame.header.seq > self.marks.get(frame.header.client, 0):
                self.marks[frame.header.client] = frame.header.seq
                self.kept.append(frame)
        if fault == "answer lost":
            raise TimeoutError("lost")
        if fault == "empty":
            return FramesReceipt()
        return FramesReceipt(frames=len(read.frames), watermarks=dict(self.marks))

    def sequences(self) -> list[int]:
        return [frame.header.seq for frame in self.kept]


def point(step: int) -> Metrics:
    return Metrics(["loss"], array("I", [0]), array("q", [step]), array("q", [step]), array("d", [1.0]))


FAULTS = st.lists(st.sampled_from(["ok", "down", "answer lost", "empty"]), max_size=6)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(st.sampled_from(["write", "ship", "restart", "lose ack"]), max_size=25), faults=FAULTS)
def test_whatever_happens_every_frame_arrives_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, moves: list[str], faults: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    server = Server()
    server.faults = list(faults)
    writer, shipper = Writer(folder), Shipper(folder, server.post, batch_bytes=300)
    written = 0
    for move in moves:
        if move == "write":
            written += 1
            writer.metrics(point(written))
        elif move == "ship":
            shipper.ship_once(force=True)
        elif move == "restart":
            shipper = Shipper(folder, server.post, batch_bytes=300)
        else:
            for path in folder.glob("*.ack"):
                path.unlink()
    server.faults = []
    assert shipper.ship_once(force=True) == 0
    assert server.sequences() == list(range(1, written + 1))


def test_batches_are_bounded_and_a_larger_frame_goes_alone(tmp_path: Path) -> None:
    server, writer = Server(), Writer(tmp_path)
    writer.lines([Line(at, "stdout", "", bytes(40_000)) for at in range(100)])
    writer.lines([Line(0, "stdout", "", bytes(5 * 2**20))])
    writer.metrics(point(1))
    assert Shipper(tmp_path, server.post).ship_once() == 0
    assert len(server.posts) >= 5
    assert [size > sender.BATCH_BYTES for size in server.posts].count(True) == 1
    assert server.sequences() == list(range(1, len(server.kept) + 1))


def test_a_torn_tail_waits_while_the_writer_lives_and_is_counted_when_it_is_gone(tmp_path: Path) -> None:
    server, writer = Server(), Writer(tmp_path)
    writer.metrics(point(1))
    whole = writer.path.read_bytes()
    with writer.path.open("ab") as file:
        file.write(whole[:30])
    shipper = Shipper(tmp_path, server.post)
    assert shipper.ship_once() == 30
    assert shipper.ship_once(final=True) == 0
    assert (shipper.lost_bytes, server.sequences()) == (30, [1])


def test_damage_in_the_middle_costs_its_frame_and_is_counted(tmp_path: Path) -> None:
    server, writer = Server(), Writer(tmp_path)
    for step in range(5):
        writer.metrics(point(step))
    data = bytearray(writer.path.read_bytes())
    size = len(data) // 5
    data[2 * size + 40] ^= 0xFF
    writer.path.write_bytes(data)
    shipper = Shipper(tmp_path, server.post)
    assert shipper.ship_once(final=True) == 0
    assert server.sequences() == [1, 2, 4, 5]
    assert shipper.lost_bytes == size
    assert Shipper(tmp_path, server.post).lost_bytes == 0
    again = Shipper(tmp_path, server.post)
    again.ship_once()
    assert again.lost_bytes == size, "what was lost is remembered beside the file"


def test_a_failure_is_followed_by_a_pause_that_force_skips(tmp_path: Path) -> None:
    server, writer = Server(), Writer(tmp_path)
    writer.metrics(point(1))
    server.faults = ["down", "down"]
    shipper = Shipper(tmp_path, server.post)
    assert shipper.ship_once() > 0
    assert isinstance(shipper.last_error, ConnectionError)
    shipper.ship_once()
    assert len(server.posts) == 1, "still pausing"
    shipper.ship_once(force=True)
    assert shipper.ship_once(force=True) == 0
    assert shipper.last_error is None


def test_one_file_that_the_server_does_not_take_is_told_by_its_error(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.metrics(point(1))
    shipper = Shipper(tmp_path, lambda _: FramesReceipt(watermarks={writer.client: 0}))
    assert shipper.ship_once() > 0
    assert "does not acknowledge" in str(shipper.last_error)


def test_a_writer_that_meets_a_full_disk_leaves_whole_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(tmp_path)
    writer.metrics(point(1))
    write = os.write

    def half(file: int, data: bytes) -> int:
        if len(data) < 40:
            raise OSError(28, "No space left on device")
        return write(file, bytes(data[: len(data) // 2]))

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="No space"):
        writer.metrics(point(2))
    monkeypatch.undo()
    writer.metrics(point(3))
    read = spool.decode(writer.path.read_bytes())
    assert read.lost == 0
    assert [frame.header.seq for frame in read.frames] == [1, 2]


def test_a_writer_names_its_file_after_rank_and_client(tmp_path: Path) -> None:
    writer = Writer(tmp_path, rank=3)
    assert writer.path.name == f"3-{writer.client}.tbs"
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.metrics(point(1))
