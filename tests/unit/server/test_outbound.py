"""The server speaks to the open internet only, to the address that was judged, and follows nobody elsewhere."""

import http.server
import threading
from collections.abc import Iterator

import pytest

from trackbed.base.errors import BadInput, Unavailable
from trackbed.server import outbound

INNER = [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "255.255.255.255",
    "224.0.0.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "2002:7f00:1::", "64:ff9b::7f00:1", "64:ff9b::a00:1", "not an address",
]  # fmt: skip


@pytest.mark.parametrize("address", INNER)
def test_an_inner_address_is_not_outer_in_any_disguise(address: str) -> None:
    assert not outbound.is_outer(address)


@pytest.mark.parametrize("address", ["140.82.121.4", "2606:50c0:8000::153", "64:ff9b::8c52:7904"])
def test_an_address_of_the_internet_is_outer(address: str) -> None:
    assert outbound.is_outer(address)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/x", "https://localhost/x", "https://[::1]/x", "https://2130706433/", "https://0x7f.1/",
        "http://140.82.121.4/", "file:///etc/passwd", "ftp://140.82.121.4/", "https://person:secret@140.82.121.4/",
    ],
)  # fmt: skip
def test_it_does_not_connect_inside_nor_without_encryption(url: str) -> None:
    with pytest.raises((BadInput, Unavailable)) as refused:
        outbound.judge(url)
    assert "secret" not in str(refused.value)


class Forge(http.server.BaseHTTPRequestHandler):
    seen: list[str] = []

    def do_POST(self) -> None:
        self.seen.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(302 if self.path == "/away" else 201)
        self.send_header("Location", "http://127.0.0.1:9/inner")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forge)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Forge.seen.clear()
    monkeypatch.setenv("TRACKBED_OUTBOUND_ALLOW", f"127.0.0.1:{server.server_port}")
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_an_inner_forge_that_was_allowed_by_name_and_port_is_reached_and_no_redirect_followed(forge: str) -> None:
    assert outbound.post(f"{forge}/status", b"{}", {}) == 201
    assert outbound.post(f"{forge}/away", b"{}", {}) == 302
    assert Forge.seen == ["/status", "/away"]
    with pytest.raises(BadInput):
        outbound.judge("http://127.0.0.1:1/")


def test_the_connection_goes_to_the_address_that_was_judged(forge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that means something else at the second look leads nowhere else: there is no second look."""
    port = int(forge.rpartition(":")[2])
    answers = iter(["127.0.0.1"])

    def once(host: str, port: int, **_: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        return [(2, 1, 6, "", (next(answers), port))]

    monkeypatch.setenv("TRACKBED_OUTBOUND_ALLOW", f"forge.example:{port}")
    real = outbound.socket.create_connection
    monkeypatch.setattr(outbound.socket, "getaddrinfo", once)
    connected: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], timeout: float) -> object:
        connected.append(address)
        monkeypatch.undo()
        return real(address, timeout)

    monkeypatch.setattr(outbound.socket, "create_connection", connect)
    assert outbound.post(f"http://forge.example:{port}/status", b"{}", {}) == 201
    assert connected == [("127.0.0.1", port)]
