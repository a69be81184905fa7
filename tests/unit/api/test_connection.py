"""A call over HTTP: problems become our errors, what may be repeated is, garbage never passes for an answer."""

import httpx
import msgspec
import pytest

from trackbed.base.errors import BadInput, Internal, NotFound, Unavailable
from trackbed.client import connection as module
from trackbed.client.config import Login
from trackbed.client.connection import Connection, part
from trackbed.wire.access import Me
from trackbed.wire.problems import FaultView, Problem

URL = "http://127.0.0.1:1"
ME = msgspec.json.encode(Me(id="per_1", name="ada"))


class Script:
    """Answers in order; the last one for ever."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def connect(script: Script, patience_s: float = 10.0) -> Connection:
    return Connection(Login(URL, "tbp_x"), patience_s=patience_s, transport=httpx.MockTransport(script))


@pytest.fixture(autouse=True)
def time_is_faked(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    class Time:
        monotonic = staticmethod(lambda: now[0])

        @staticmethod
        def sleep(seconds: float) -> None:
            now[0] += seconds

    monkeypatch.setattr(module, "time", Time)


def problem(status: int, code: str, **more: object) -> httpx.Response:
    body = Problem(type=f"urn:trackbed:error:{code}", status=status, code=code, **more)  # type: ignore[arg-type]
    return httpx.Response(status, content=msgspec.json.encode(body))


def test_a_problem_becomes_the_error_of_its_family_with_all_faults() -> None:
    faults = [FaultView(code="dataset_unknown", field="data.corpus", params={"name": "x"})]
    script = Script(problem(400, "spec_wrong", params={"count": 1}, faults=faults))
    with pytest.raises(BadInput) as caught:
        connect(script).post("/api/v1/runs", Me)
    assert (caught.value.code, caught.value.faults[0].field, caught.value.params) == (
        "spec_wrong",
        "data.corpus",
        {"count": 1},
    )


def test_the_token_goes_along() -> None:
    script = Script(httpx.Response(200, content=ME))
    assert connect(script).get("/api/v1/me", Me).name == "ada"
    assert script.requests[0].headers["authorization"] == "Bearer tbp_x"


def test_a_read_is_repeated_while_the_server_is_away() -> None:
    script = Script(
        httpx.ConnectError("refused"), httpx.ReadError("cut"), httpx.Response(503), httpx.Response(200, content=ME)
    )
    assert connect(script).get("/api/v1/me", Me).name == "ada"
    assert len(script.requests) == 4


def test_patience_ends_with_the_address_and_a_way_out() -> None:
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1 does not answer .*trackbed up") as caught:
        connect(Script(httpx.ConnectError("refused"))).get("/api/v1/me", Me)
    assert caught.value.exit_status == 6


def test_where_nobody_listens_the_sentence_says_so_and_no_number_of_an_error_is_shown() -> None:
    with (
        Connection(Login("http://127.0.0.1:1", ""), patience_s=0) as api,
        pytest.raises(Unavailable, match=r"Nothing listens at http://127\.0\.0\.1:1\. `trackbed up`") as raised,
    ):
        api.get("/api/v1/me", Me)
    assert "Errno" not in raised.value.text("zh")
    named = connect(Script(httpx.ConnectError("[Errno -2] Name or service not known")), patience_s=0)
    with pytest.raises(Unavailable, match=r"does not answer \(Name or service not known\)"):
        named.get("/api/v1/me", Me)


def test_a_change_without_a_key_is_never_sent_twice_once_it_may_have_arrived() -> None:
    script = Script(httpx.ReadError("cut"), httpx.Response(200, content=ME))
    with pytest.raises(Unavailable):
        connect(script).post("/api/v1/x", Me, {})
    assert len(script.requests) == 1


def test_a_change_with_a_key_is_repeated_with_the_same_key() -> None:
    script = Script(httpx.ReadError("cut"), httpx.Response(200, content=ME))
    connect(script).post("/api/v1/x", Me, {}, key="idm_1")
    assert [request.headers["idempotency-key"] for request in script.requests] == ["idm_1", "idm_1"]


def test_a_body_is_made_anew_for_each_try() -> None:
    bodies: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(request.read())
        return httpx.Response(204 if len(bodies) > 1 else 503)

    Connection(Login(URL, ""), transport=httpx.MockTransport(answer)).send(
        "PUT", "/x", content=lambda: iter([b"a", b"b"])
    )
    assert bodies == [b"ab", b"ab"]


def test_garbage_with_status_200_is_no_answer() -> None:
    with pytest.raises(Unavailable, match="not Trackbed's"):
        connect(Script(httpx.Response(200, content=b"<html>"))).get("/api/v1/me", Me)


def test_a_strange_error_page_keeps_its_family() -> None:
    with pytest.raises(NotFound):
        connect(Script(httpx.Response(404, content=b"<html>"))).get("/x", Me)
    with pytest.raises(Internal):
        connect(Script(httpx.Response(500, content=b"oops"))).get("/x", Me)


def test_a_fault_of_the_server_is_not_repeated() -> None:
    script = Script(problem(500, "internal", params={"what": "x"}))
    with pytest.raises(Internal):
        connect(script).get("/x", Me)
    assert len(script.requests) == 1


def test_unset_questions_are_left_out() -> None:
    script = Script(httpx.Response(200, content=ME))
    connect(script).get("/x", Me, {"a": None, "b": "", "c": 0, "d": False})
    assert script.requests[0].url.query == b"c=0&d=false"


@pytest.mark.parametrize(
    ("text", "safe"), [("demo#17", "demo%2317"), ("demo/a b", "demo%2Fa%20b"), ("损失", "%E6%8D%9F%E5%A4%B1")]
)
def test_references_are_one_part_of_the_path(text: str, safe: str) -> None:
    assert part(text) == safe
