"""A real server process: who gets in, what is refused, how it starts and ends."""

import json
import re
import signal
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from server_process import Server

from trackbed.testing.database import new_url
from trackbed.testing.pace import slowness


def code_of(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["code"]


# --- the door ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8470", "127.0.0.1.evil.example", "", "[::2]", "127.0.0.1@evil"]
)
def test_a_foreign_host_name_is_refused_on_every_route(server: Server, host: str) -> None:
    for path in ("/", "/healthz", "/api/v1/me", "/metrics"):
        assert code_of(server.ask("GET", path, headers={"Host": host})) == (400, "host_refused")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1234", "[::1]:8470", "LOCALHOST"])
def test_names_of_loopback_are_our_own(server: Server, host: str) -> None:
    assert server.ask("GET", "/healthz", headers={"Host": host}).status_code == 200


def test_a_request_from_another_sites_page_is_refused_even_with_everything_else_right(server: Server) -> None:
    browser = server.browser()
    for origin in ("https://evil.example", "null", f"{server.url}.evil.example", "http://127.0.0.1:1"):
        answer = browser.post("/api/v1/tokens", json={}, headers={"Origin": origin})
        assert code_of(answer) == (403, "origin_refused")
    assert browser.post("/api/v1/tokens", json={}, headers={"Origin": server.url}).status_code == 201


def test_an_unsafe_request_by_cookie_needs_the_token_of_its_own_session(server: Server) -> None:
    one, other = server.browser(), server.browser()
    csrf = one.headers.pop("X-Trackbed-CSRF")
    assert one.get("/api/v1/me").json()["csrf"] == csrf, "a page that was opened anew can ask for it"
    assert code_of(one.post("/api/v1/tokens", json={})) == (403, "csrf_refused")
    wrong = {"X-Trackbed-CSRF": other.headers["X-Trackbed-CSRF"]}
    assert code_of(one.post("/api/v1/tokens", json={}, headers=wrong)) == (403, "csrf_refused")
    assert one.post("/api/v1/tokens", json={}, headers={"X-Trackbed-CSRF": csrf}).status_code == 201


def test_there_is_no_cross_origin_sharing(server: Server) -> None:
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = server.ask("OPTIONS", "/api/v1/tokens", token="", headers=asked)
    assert answer.status_code == 405
    shown = server.ask("GET", "/api/v1/me", headers={"Origin": "https://evil.example"})
    for headers in (answer.headers, shown.headers):
        assert not [name for name in headers if name.startswith("access-control")]


def test_every_answer_tells_browsers_to_trust_nothing_else(server: Server) -> None:
    for answer in (server.ask("GET", "/"), server.ask("GET", "/api/v1/me"), server.ask("GET", "/api/v1/none")):
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers


# --- signing in -------------------------------------------------------------------------------------------------------


def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites(server: Server) -> None:
    answer = httpx.post(server.url + "/api/v1/login", json={"code": server.admin})
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("trackbed_session=tbs_")
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= parts
    assert not [part for part in parts if part.startswith("domain")]


def test_a_login_link_signs_in_once(server: Server) -> None:
    url = server.json(
        "POST",
        "/api/v1/people/root/login-link" if _admin(server) == "root" else f"/api/v1/people/{_admin(server)}/login-link",
    )["login_url"]
    base, _, code = url.partition("/login#code=")
    assert base == server.url
    assert server.browser(code).get("/api/v1/me").json()["admin"]
    assert code_of(httpx.post(server.url + "/api/v1/login", json={"code": code})) == (401, "login_code_dead")


def _admin(server: Server) -> str:
    return server.json("GET", "/api/v1/me")["name"]


def test_signing_out_ends_the_session_on_the_server_too(server: Server) -> None:
    browser = server.browser()
    cookie = browser.cookies["trackbed_session"]
    assert browser.post("/api/v1/logout").status_code == 204
    stolen = httpx.get(server.url + "/api/v1/me", headers={"Cookie": f"trackbed_session={cookie}"})
    assert code_of(stolen) == (401, "token_dead")


def test_a_session_is_no_bearer_token(server: Server) -> None:
    cookie = server.browser().cookies["trackbed_session"]
    assert code_of(server.ask("GET", "/api/v1/me", token=cookie)) == (401, "token_dead")


def test_a_revoked_token_is_refused_at_once(server: Server) -> None:
    made = server.json("POST", "/api/v1/tokens", json={"label": "laptop"})
    assert server.ask("GET", "/api/v1/me", token=made["secret"]).status_code == 200
    assert server.ask("DELETE", f"/api/v1/tokens/{made['id']}").status_code == 204
    assert code_of(server.ask("GET", "/api/v1/me", token=made["secret"])) == (401, "token_dead")
    listed = {t["id"]: t for t in server.json("GET", "/api/v1/tokens")}
    assert listed[made["id"]]["revoked"]
    assert "secret" not in listed[made["id"]]


def test_an_expired_token_is_refused(server: Server) -> None:
    made = server.json("POST", "/api/v1/tokens", json={"expires_s": 0.05})
    time.sleep(0.06)
    assert code_of(server.ask("GET", "/api/v1/me", token=made["secret"])) == (401, "token_dead")


# --- roles and walls --------------------------------------------------------------------------------------------------


def test_a_viewer_reads_but_cannot_write(server: Server) -> None:
    viewer = server.person("vera", default="viewer")
    assert server.ask("GET", "/api/v1/projects", token=viewer).status_code == 200
    assert code_of(server.ask("POST", "/api/v1/outside-runs", token=viewer, json={})) == (403, "role_too_low")
    assert code_of(server.ask("GET", "/api/v1/people", token=viewer)) == (403, "role_too_low")
    assert code_of(server.ask("POST", "/api/v1/spaces", token=viewer, json={"name": "x"})) == (403, "role_too_low")
    body = {"person": "vera", "role": "maintainer"}
    assert code_of(server.ask("PUT", "/api/v1/spaces/default/members", token=viewer, json=body)) == (
        403,
        "role_too_low",
    )
    assert code_of(server.ask("POST", "/api/v1/tokens", token=viewer, json={"person": _admin(server)})) == (
        403,
        "role_too_low",
    )


def test_a_second_space_is_refused_until_the_one_trust_domain_is_accepted(server: Server) -> None:
    assert code_of(server.ask("POST", "/api/v1/spaces", json={"name": "alone"})) == (409, "one_trust_domain")
    made = server.json("POST", "/api/v1/spaces", json={"name": "alone", "accept_one_trust_domain": True})
    assert made["name"] == "alone"


def test_a_member_of_one_space_cannot_see_what_is_in_another(server: Server) -> None:
    server.json("POST", "/api/v1/spaces", json={"name": "walled", "accept_one_trust_domain": True})
    outsider, insider = server.person("otto"), server.person("ines", default="", walled="member")
    run = server.json("POST", "/api/v1/outside-runs", token=outsider, json={"name": "mine"})["id"]
    assert server.json("GET", f"/api/v1/runs/{run}", token=outsider)["run"]["name"] == "mine"
    for ref in (run, run[:12], "demo%231", "demo%2Fmine", "default%2Fdemo%231"):
        assert server.json("GET", f"/api/v1/runs/{ref}", token=outsider)["run"]["id"] == run
        assert server.ask("GET", f"/api/v1/runs/{ref}", token=insider).status_code == 404
    assert code_of(server.ask("POST", f"/api/v1/runs/{run}/stop", token=insider, json={}))[0] == 404
    assert server.json("GET", "/api/v1/runs", token=insider)["runs"] == []
    assert [s["name"] for s in server.json("GET", "/api/v1/spaces", token=insider)] == ["walled"]
    assert server.json("GET", "/api/v1/projects", token=insider) == []
    body = {"person": "ines", "role": "viewer"}
    assert server.ask("PUT", "/api/v1/spaces/default/members", token=insider, json=body).status_code in (403, 404)
    assert server.ask("GET", f"/api/v1/stream?topics=run:{run}", token=insider).status_code == 404


# --- problems ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "content", "expected"),
    [
        ("GET", "/api/v1/nothing", None, (404, "route_unknown")),
        ("POST", "/api/v1/me", None, (405, "method_not_allowed")),
        ("POST", "/api/v1/people", b"{", (400, "request_bad")),
        ("POST", "/api/v1/people", b'{"name": 3}', (400, "request_bad")),
        ("POST", "/api/v1/people", b'{"name": "a b"}', (400, "access_name_bad")),
        ("POST", "/api/v1/people", b"\xff\xfe", (400, "request_bad")),
        ("GET", "/api/v1/runs?limit=many", None, (400, "request_bad")),
    ],
)  # fmt: skip
def test_every_error_is_a_problem_with_a_code(
    server: Server, method: str, path: str, content: bytes | None, expected: tuple[int, str]
) -> None:
    answer = server.ask(method, path, content=content)
    assert code_of(answer) == expected
    assert answer.json()["type"] == f"urn:trackbed:error:{expected[1]}"
    assert "Traceback" not in answer.text
    assert ".py" not in answer.text


def test_a_body_that_is_too_large_is_refused(server: Server) -> None:
    answer = server.ask("POST", "/api/v1/people", content=b"x" * (65 << 20))
    assert code_of(answer) == (413, "body_too_large")


def test_secrets_are_in_no_log(server: Server) -> None:
    server.ask("GET", "/api/v1/me?token=" + server.admin)
    text = server.log.read_text()
    assert server.admin not in text
    assert not re.search(r"tb[pas]_[0-9a-z]{30}", text)


# --- idempotency ------------------------------------------------------------------------------------------------------


def test_a_repeated_key_gets_the_first_answer_and_works_once(server: Server) -> None:
    def post(key: str, label: str, token: str | None = None) -> httpx.Response:
        return server.ask(
            "POST", "/api/v1/tokens", token=token, json={"label": label}, headers={"Idempotency-Key": key}
        )

    first, again = post("k1", "once"), post("k1", "once")
    assert (first.status_code, first.content) == (again.status_code, again.content) == (201, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert first.headers["content-type"] == again.headers["content-type"]
    assert len([t for t in server.json("GET", "/api/v1/tokens") if t.get("label") == "once"]) == 1
    assert code_of(post("k1", "other")) == (409, "idempotency_mismatch")
    assert post("k1", "once", token=server.person("kim")).json()["person"] == "kim", "a key is its actor's own"


def test_a_request_that_failed_may_be_tried_again_with_its_key(server: Server) -> None:
    def post(name: str) -> httpx.Response:
        headers = {"Idempotency-Key": "people-1"}
        return server.ask("POST", "/api/v1/people", json={"name": name}, headers=headers)

    assert post("bad name").status_code == 400
    assert post("goodname").status_code == 201


def test_a_key_works_once_however_many_send_it_at_the_same_time(server: Server) -> None:
    answers: list[httpx.Response] = []

    def post() -> None:
        headers = {"Idempotency-Key": "race"}
        answers.append(server.ask("POST", "/api/v1/tokens", json={"label": "race"}, headers=headers))

    threads = [threading.Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {a.status_code for a in answers} <= {201, 409}
    assert len([t for t in server.json("GET", "/api/v1/tokens") if t.get("label") == "race"]) == 1


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_answers_at_the_root_and_at_deep_links_but_never_below_api(server: Server) -> None:
    for path in ("/", "/runs/run_abc", "/login"):
        answer = server.ask("GET", path, token="")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
    for path in ("/api/v2/x", "/api", "/assets/none.js", "/favicon.nothing", "/assets/../main.py", "/%2e%2e/main.py"):
        assert server.ask("GET", path, token="").status_code == 404


# --- the stream -------------------------------------------------------------------------------------------------------


class Stream:
    """Reads an event stream on a thread, as a browser would."""

    def __init__(self, server: Server, query: str, token: str | None = None, **headers: str) -> None:
        self.news: list[dict[str, Any]] = []
        self.ids: list[int] = []
        self.beats = 0
        self.ended = threading.Event()
        self.open = threading.Event()
        self._arguments = (server.url + "/api/v1/stream" + query, token or server.admin, headers)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        assert self.open.wait(10)

    def _read(self) -> None:
        url, token, headers = self._arguments
        asked = {"Authorization": f"Bearer {token}", **headers}
        try:
            with httpx.stream("GET", url, headers=asked, timeout=httpx.Timeout(10, read=10)) as answer:
                assert answer.headers["content-type"].startswith("text/event-stream")
                for line in answer.iter_lines():
                    self.open.set()
                    if line.startswith("data: "):
                        self.news.append(json.loads(line[6:]))
                    elif line.startswith("id: "):
                        self.ids.append(int(line[4:]))
                    self.beats += line == ": beat"
        except httpx.HTTPError:
            pass
        self.ended.set()

    def until(self, true: Any, what: str) -> None:
        deadline = time.monotonic() + 10
        while not true():
            assert time.monotonic() < deadline, (what, self.news)
            time.sleep(0.01)


def test_a_stream_tells_changes_of_runs_as_they_happen_and_beats_in_between(server: Server) -> None:
    stream = Stream(server, "?topics=runs,queue")
    stream.until(lambda: stream.beats, "a heartbeat")
    run = server.json("POST", "/api/v1/outside-runs", json={"name": "seen"})["id"]
    stream.until(lambda: [n for n in stream.news if n["topic"] == "runs" and n["run_id"] == run], "the new run")
    assert all(n["run_id"] == "" for n in stream.news if n["topic"] == "queue")
    assert stream.ids == sorted(stream.ids)


def test_a_stream_that_comes_back_is_told_what_it_missed_once(server: Server) -> None:
    stream = Stream(server, "?topics=runs")
    server.json("POST", "/api/v1/outside-runs", json={"name": "first"})
    stream.until(lambda: stream.ids, "the first run")
    seen = stream.ids[-1]
    missed = server.json("POST", "/api/v1/outside-runs", json={"name": "missed"})["id"]
    back = Stream(server, "?topics=runs", **{"Last-Event-ID": str(seen)})
    later = server.json("POST", "/api/v1/outside-runs", json={"name": "later"})["id"]
    back.until(lambda: later in {n["run_id"] for n in back.news}, "the later run")
    assert {n["run_id"] for n in back.news} == {missed, later}
    assert len(back.ids) == len(set(back.ids))
    assert min(back.ids) > seen


def test_a_stream_ends_when_its_token_is_revoked(server: Server) -> None:
    made = server.json("POST", "/api/v1/tokens", json={})
    stream = Stream(server, "?topics=runs", token=made["secret"])
    server.ask("DELETE", f"/api/v1/tokens/{made['id']}")
    assert stream.ended.wait(10)


def test_a_stream_shows_a_stranger_no_run_of_a_space_that_they_may_not_read(server: Server) -> None:
    stranger = server.person("stan", default="")
    stream = Stream(server, "?topics=runs,queue", token=stranger)
    run = server.json("POST", "/api/v1/outside-runs", json={"name": "hidden"})["id"]
    stream.until(lambda: stream.news, "the queue's move")
    time.sleep(0.1)
    assert {n["topic"] for n in stream.news} == {"queue"}
    assert run not in str(stream.news)


def test_an_unknown_topic_is_refused(server: Server) -> None:
    assert code_of(server.ask("GET", "/api/v1/stream?topics=everything")) == (400, "topic_unknown")
    assert code_of(server.ask("GET", "/api/v1/stream?topics=run:run_none_here"))[0] == 404


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_status_and_metrics_say_how_the_server_is(server: Server) -> None:
    status = server.json("GET", "/api/v1/status")
    assert status["cards_total"] == 2
    assert status["url"] == server.url
    assert [w["code"] for w in status["warnings"]] == ["one_trust_domain_here"]
    text = server.ask("GET", "/metrics").text
    assert 'trackbed_lane_wait_seconds{lane="control",quantile="0.99"}' in text
    for line in text.splitlines():
        assert re.fullmatch(
            r"# (HELP|TYPE) .+|[a-z_]+(\{[a-z_]+=\"[^\"]*\"(,[a-z_]+=\"[^\"]*\")*\})? [-+0-9.e]+", line
        ), line


def test_the_schema_of_the_api_names_its_records(server: Server) -> None:
    schema = server.json("GET", "/api/v1/openapi.json")
    assert "/api/v1/status" in schema["paths"]
    assert "StatusView" in schema["components"]["schemas"]


# --- start and end ----------------------------------------------------------------------------------------------------


def test_it_starts_on_an_empty_folder_in_a_few_seconds_of_a_core_and_leaves_modes_and_a_marker(
    own_server: Server,
) -> None:
    server = own_server.start()
    assert server.process is not None
    used = psutil.Process(server.process.pid).cpu_times()
    # A second is what it should be. It imports 1,200 modules and registers 190 handlers: see docs/explanation/performance.md, "What is missed"
    assert used.user + used.system < 2.8 * slowness()
    for path, mode in (
        (server.home, 0o700),
        (server.home / "trackbed.sqlite3", 0o600),
        (server.home / "client" / "credentials.json", 0o600),
    ):
        assert stat.S_IMODE(path.stat().st_mode) == mode
    text = server.log.read_text()
    assert f"{server.url}/login#code=tbl_" in text
    assert "trust domain" in text
    assert server.stop() == 0
    assert not (server.home / "server.json").exists()
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_at_once_on_a_signal_though_streams_are_open(own_server: Server, number: int) -> None:
    stream = Stream(own_server.start(), "?topics=runs")
    began = time.monotonic()
    assert own_server.stop(number) == 0
    assert time.monotonic() - began < 5
    assert stream.ended.wait(5)


def test_a_restart_keeps_people_tokens_and_the_credentials_of_the_account(own_server: Server) -> None:
    token = own_server.start().person("ada")
    admin = own_server.admin
    own_server.stop(signal.SIGKILL)
    own_server.start()
    assert own_server.admin == admin
    assert own_server.json("GET", "/api/v1/me", token=token)["name"] == "ada"
    own_server.stop()


def test_a_second_server_on_the_same_home_is_refused_and_the_first_lives_on(own_server: Server) -> None:
    own_server.start()
    second = Server(own_server.home)
    second.log = own_server.home.parent / "second.log"
    with pytest.raises(AssertionError, match=r"database_in_use|pid"):
        second.start()
    assert own_server.ask("GET", "/healthz").status_code == 200


def test_a_port_that_is_taken_is_said(own_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr("server_process.CODE", sys_code(port))
        with pytest.raises(AssertionError, match=f"{port}"):
            own_server.start()


def sys_code(port: int) -> str:
    return f"""
import sys
from pathlib import Path
from trackbed.server.main import serve
from trackbed.server.settings import Settings
serve(Settings(home=Path(sys.argv[1]), port={port}, loops=False))
"""


def test_the_same_server_runs_on_postgresql(tmp_path: Path) -> None:
    server = Server(tmp_path / "home", new_url("postgresql", tmp_path)).start()
    try:
        ada = server.person("ada")
        stream = Stream(server, "?topics=runs")
        refs = [server.json("POST", "/api/v1/outside-runs", token=ada, json={"name": f"{n}"})["ref"] for n in range(5)]
        assert refs == [f"demo#{n}" for n in range(1, 6)]
        stream.until(lambda: len({n["run_id"] for n in stream.news}) == 5, "five runs")
        assert server.json("GET", "/api/v1/status")["counts"] == {"running": 5}
        assert len(server.json("GET", "/api/v1/runs", token=ada)["runs"]) == 5
        server.stop(signal.SIGKILL)
        assert server.start().json("GET", "/api/v1/me", token=ada)["name"] == "ada"
    finally:
        assert server.stop() == 0


def test_a_server_whose_disk_fails_a_sync_acknowledges_nothing_more_and_ends(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKBED_FAULT", "db.commit@15=EIO")
    server = own_server.start()
    acknowledged = 0
    answer = server.ask("GET", "/healthz", token="")
    for n in range(20):
        try:
            answer = server.ask("POST", "/api/v1/tokens", json={"label": f"n{n}"})
        except httpx.TransportError:
            break
        if answer.status_code != 201:
            break
        acknowledged += 1
    assert answer.status_code == 500
    assert answer.json()["code"] == "database_failed"
    assert server.process is not None
    assert server.process.wait(20) != 0
    monkeypatch.delenv("TRACKBED_FAULT")
    server.start()
    labels = [t["label"] for t in server.json("GET", "/api/v1/tokens") if t.get("label", "").startswith("n")]
    assert sorted(labels) == sorted(f"n{n}" for n in range(acknowledged))
    server.stop()


def test_a_key_whose_server_died_over_it_works_at_most_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill the server at each commit of a keyed request in turn; the key is then sent again to the next server."""
    outcomes: list[tuple[int, int]] = []
    for nth in range(4, 30):
        server = Server(tmp_path / f"home{nth}")
        monkeypatch.setenv("TRACKBED_FAULT", f"db.commit@{nth}=kill")
        try:
            server.start()
        except AssertionError:
            continue  # it died while it started

        def post(server: Server = server) -> httpx.Response:
            headers = {"Idempotency-Key": "once"}
            return server.ask("POST", "/api/v1/people", json={"name": "ada"}, headers=headers)

        try:
            post()
        except httpx.TransportError:
            assert server.process is not None
            server.process.wait(10)
            monkeypatch.delenv("TRACKBED_FAULT")
            server.start()
            again = post()
            people = [person["name"] for person in server.json("GET", "/api/v1/people")].count("ada")
            outcomes.append((again.status_code, people))
            server.stop()
        else:
            server.stop()
            break
    assert len(outcomes) >= 3, "the note, the work and the answer are commits of their own"
    assert set(outcomes) <= {(201, 1), (409, 0), (409, 1)}
    assert outcomes[-1] == (409, 1), "done, but its answer was lost: said, not repeated"
