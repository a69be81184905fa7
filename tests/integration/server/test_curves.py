"""Curves over HTTP: JSON and columns say the same, values cross bit for bit, and a wrong question is answered by name."""

import math
import struct
import time
from array import array
from collections.abc import Iterator

import pytest
from server_process import Server

from trackbed.client.api import Client
from trackbed.formats import spool
from trackbed.formats.columns import MEDIA_TYPE
from trackbed.formats.spool import Header, Metrics
from trackbed.wire.series import SeriesQuery

ODD = struct.unpack("<d", bytes.fromhex("010000000000f87f"))[0]
VALUES = [1.5, -0.0, math.inf, -math.inf, ODD, 5e-324] + [at / 7 for at in range(3000)]


@pytest.fixture(scope="module")
def run(server: Server) -> str:
    made = server.json("POST", "/api/v1/outside-runs", json={"project": "demo", "name": "curves"})["id"]
    size = len(VALUES)
    columns = Metrics(
        ["loss"], array("I", [0] * size), array("q", range(size)), array("q", range(size)), array("d", VALUES)
    )
    head = Header(kind=spool.METRICS, run=made, client="cli_0000curves", seq=1, ts=time.time_ns() // 1000, n=size)
    body = spool.encode(head, spool.encode_metrics(columns))
    receipt = server.json("POST", f"/api/v1/runs/{made}/frames", content=body)
    assert receipt["points"] == size
    return made


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with Client(server.url, server.admin) as opened:
        yield opened


def test_the_library_reads_a_history_bit_for_bit(client: Client, run: str) -> None:
    points = client.history(run, "loss")
    assert array("d", [float(point.value) for point in points]).tobytes() == array("d", VALUES).tobytes()
    assert [point.step for point in points] == list(range(len(VALUES)))


def test_columns_and_json_say_the_same(server: Server, client: Client, run: str) -> None:
    for buckets in (100, 2_000):
        query = {"runs": [run], "keys": ["loss", "none"], "buckets": buckets, "from": 10.0}
        plain = server.json("POST", "/api/v1/series", json=query)
        packed = client.curves(SeriesQuery(runs=[run], keys=["loss", "none"], buckets=buckets, from_=10.0))
        (told,), (read,) = plain["series"], packed.series
        assert told["x"] == read.x and told["last"] == read.last and told["max"] == read.max
        assert told["min"] == read.min and told["mean"] == read.mean and told["count"] == read.count
        assert told.get("at", []) == read.at and told["points"] == read.points == len(VALUES) - 10
        assert packed.cursors == plain["cursors"]
    told = server.json("GET", f"/api/v1/runs/{run}/history", params={"key": "loss", "limit": 7})
    assert [point[2] for point in told["points"]] == [1.5, -0.0, "Infinity", "-Infinity", "NaN", 5e-324, 0.0]


def test_what_is_new_since_a_cursor_comes_alone(client: Client, run: str) -> None:
    first = client.curves(SeriesQuery(runs=[run], keys=["loss"]))
    again = client.curves(SeriesQuery(runs=[run], keys=["loss"], since=first.cursors))
    assert again.series[0].appended and again.series[0].x == []


def test_a_wrong_question_names_every_field(server: Server, run: str) -> None:
    query = {"runs": [run], "keys": ["loss"], "x": "metrics.", "buckets": 0, "since": {run: "-1"}}
    answer = server.ask("POST", "/api/v1/series", json=query)
    assert answer.status_code == 400
    assert [fault["code"] for fault in answer.json()["faults"]] == ["series_axis", "series_buckets", "cursor_wrong"]


def test_columns_are_asked_for_by_name(server: Server, run: str) -> None:
    answer = server.ask(
        "GET", f"/api/v1/runs/{run}/history", params={"key": "loss"}, headers={"Accept": f"{MEDIA_TYPE}, text/plain"}
    )
    assert answer.headers["content-type"].startswith(MEDIA_TYPE) and answer.content.startswith(b"TBC1")
