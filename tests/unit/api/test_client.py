"""The client's own logic: waiting, paging, following, merging the faults of both sides."""

from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest

from trackbed.base.errors import BadInput, NotFound, Unavailable
from trackbed.client import api
from trackbed.client.api import Client
from trackbed.client.submit import prepare
from trackbed.wire.data import ModelVersionView, ModelView
from trackbed.wire.problems import FaultView, Problem
from trackbed.wire.runs import RunDetail, RunPage, RunView
from trackbed.wire.series import HistoryReply, LogLine, LogPage, Point
from trackbed.wire.spec import Spec

Route = Callable[[httpx.Request], Any]


def client(routes: dict[str, Route]) -> Client:
    """Return a client of a server that has these routes (`METHOD /path`)."""

    def answer(request: httpx.Request) -> httpx.Response:
        found = routes[f"{request.method} {request.url.path}"](request)
        return found if isinstance(found, httpx.Response) else httpx.Response(200, content=msgspec.json.encode(found))

    return Client("http://127.0.0.1:1", "tbp_x", transport=httpx.MockTransport(answer))


@pytest.fixture(autouse=True)
def time_is_faked(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    class Time:
        monotonic = staticmethod(lambda: now[0])

        @staticmethod
        def sleep(seconds: float) -> None:
            now[0] += seconds

    monkeypatch.setattr(api, "time", Time)


def detail(state: str) -> RunDetail:
    return RunDetail(
        run=RunView(id="run_1", ref="demo#1", number=1, project="demo", space="default", state=state), spec=Spec()
    )


def test_wait_returns_at_the_end_and_not_before() -> None:
    states = iter(["queued", "running", "running", "finished"])
    with client({f"GET /api/v1/runs/{ref}": lambda _: detail(next(states)) for ref in ("demo#1", "run_1")}) as found:
        assert found.wait("demo#1").run.state == "finished"


def test_wait_stays_with_the_run_that_the_reference_named_at_first() -> None:
    states = iter(["running", "finished"])
    looks = iter([detail("running")])
    routes: dict[str, Route] = {
        "GET /api/v1/runs/-": lambda _: next(looks),
        "GET /api/v1/runs/run_1": lambda _: detail(next(states)),
    }
    with client(routes) as found:
        assert found.wait("-").run.id == "run_1"


def test_wait_gives_up_with_the_state_it_saw() -> None:
    with client({"GET /api/v1/runs/run_1": lambda _: detail("queued")}) as found, pytest.raises(Unavailable) as caught:
        found.wait("run_1", timeout_s=5)
    assert caught.value.params["state"] == "queued"


def test_runs_follows_pages_and_reads_words_as_numbers() -> None:
    def page(request: httpx.Request) -> RunPage:
        at = int(request.url.params.get("cursor") or 0)
        view = msgspec.structs.replace(detail("finished").run, id=f"run_{at}", metrics={"loss": "NaN"})
        return RunPage(runs=[view], next=str(at + 1) if at < 4 else "")

    with client({"GET /api/v1/runs": page}) as found:
        got = found.runs(limit=10)
        assert [view.id for view in got] == [f"run_{at}" for at in range(5)]
        assert got[0].metrics["loss"] != got[0].metrics["loss"]
        assert len(found.runs(limit=2)) == 2


def test_history_reads_every_page_and_every_ieee_value() -> None:
    pages = {"": HistoryReply(key="x", points=[Point(step=0, time_us=1, value="-Infinity")], next="a"),
             "a": HistoryReply(key="x", points=[Point(step=1, time_us=2, value=-0.0)])}  # fmt: skip
    with client({"GET /api/v1/runs/r/history": lambda request: pages[request.url.params.get("cursor", "")]}) as found:
        assert [str(point.value) for point in found.history("r", "x")] == ["-inf", "-0.0"]


def test_following_logs_ends_only_after_a_look_behind_the_end() -> None:
    line = LogLine(id="1", time_us=0, attempt=1, rank=0, stream="stdout", level="info", text="a")
    pages = iter(
        [
            LogPage(lines=[line], next="1"),
            LogPage(lines=[], next="1"),
            LogPage(lines=[msgspec.structs.replace(line, id="2", text="last")], next="2"),
        ]
    )
    states = iter(["running", "running", "finished"])
    routes: dict[str, Route] = {
        "GET /api/v1/runs/run_1/logs": lambda _: next(pages),
        "GET /api/v1/runs/-": lambda _: detail(next(states)),
        "GET /api/v1/runs/run_1": lambda _: detail(next(states)),
    }
    with client(routes) as found:
        assert [one.text for one in found.logs("-", follow=True)] == ["a", "last"]


def test_a_model_is_found_by_number_latest_and_alias() -> None:
    versions = [ModelVersionView(model="m", version=number, digest=f"b3:{number}") for number in (1, 2, 3)]
    model = ModelView(name="m", space="default", latest=3, aliases={"prod": 2}, versions=versions)
    with client({"GET /api/v1/models/m": lambda _: model}) as found:
        assert [found.models.resolve(ref).version for ref in ("m@1", "m@latest", "m", "m@prod", "m@b3:2")] == [
            1,
            3,
            3,
            2,
            2,
        ]
        with pytest.raises(NotFound, match="There are: 1, 2, 3, prod"):
            found.models.resolve("m@9")


def test_faults_of_the_file_and_of_the_server_come_in_one_message_with_lines() -> None:
    def refuse(_: httpx.Request) -> httpx.Response:
        faults = [FaultView(code="dataset_unknown", field="data.corpus"), FaultView(code="too_large_for_any_node", field="resources"),
                  FaultView(code="spec_param_undefined", field="run")]  # fmt: skip
        told = Problem(type="urn:trackbed:error:spec_wrong", status=400, code="spec_wrong", faults=faults)
        return httpx.Response(400, content=msgspec.json.encode(told))

    text = "run: t {{params.lr}}\ndata:\n  corpus: nothing@1\nresources: {cards: 99}\nparams: 3\nzebra: 1\n"
    with client({"POST /api/v1/runs": refuse}) as found, pytest.raises(BadInput) as caught:
        found.send(prepare(text))
    assert [(fault.code, fault.line) for fault in caught.value.faults] == [
        ("dataset_unknown", 3),
        ("too_large_for_any_node", 4),
        ("spec_want_object", 5),
        ("spec_unknown_field", 6),
    ]


def test_a_server_that_is_away_does_not_hide_what_is_wrong_here() -> None:
    def away(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with client({"POST /api/v1/runs": away}) as found, pytest.raises(BadInput) as caught:
        found.connection.patience_s = 0
        found.send(prepare("zebra: 1\nrun: x\n"))
    assert [fault.code for fault in caught.value.faults] == ["spec_unknown_field"]
