"""The one function by which the server speaks to others. Inner addresses are refused, redirects are not followed.

A name is looked up once, every address of it is judged, and the connection goes to the address that was judged: a name that
means something else a moment later leads nowhere. An inner forge is reached only where whoever starts the server named it:
`TRACKBED_OUTBOUND_ALLOW=git.corp:443,10.0.0.5:8443`.
"""

import http.client
import ipaddress
import os
import socket
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from trackbed.base.errors import BadInput, Unavailable

TIMEOUT_S = 10.0
MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Place:
    """Where a URL leads, judged: name for the certificate, address to connect to."""

    scheme: str
    host: str
    port: int
    address: str
    path: str


def judge(url: str) -> Place:
    """Look a URL up and return where it leads.

    Raises:
        BadInput: `outbound_refused`: not https, or an inner address that nobody allowed.
        Unavailable: `outbound_unknown_host`.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)
    named = f"{host}:{port}" in _allowed()
    if parts.scheme != "https" and not (named and parts.scheme == "http"):
        raise BadInput("outbound_refused", url=_shown(url), why="not https")
    if parts.username or parts.password:
        raise BadInput("outbound_refused", url=_shown(url), why="a password in the address")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as fault:
        raise Unavailable("outbound_unknown_host", host=host, why=fault.strerror or str(fault)) from fault
    addresses = [str(one[4][0]) for one in found]
    if not named and (bad := next((one for one in addresses if not is_outer(one)), "")):
        raise BadInput("outbound_refused", url=_shown(url), why=f"{host} is the inner address {bad}")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Place(parts.scheme, host, port, addresses[0], path)


def is_outer(address: str) -> bool:
    """Tell whether an address lies in the open internet: not loopback, private, link-local, reserved, or one in disguise."""
    try:
        one = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(one, ipaddress.IPv6Address):
        inside = one.ipv4_mapped or one.sixtofour or (one.teredo[1] if one.teredo else None)
        if inside is not None:
            return is_outer(str(inside))
        if one in _NAT64:
            return is_outer(str(ipaddress.IPv4Address(int(one) & 0xFFFFFFFF)))
    return one.is_global and not one.is_multicast


_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def post(url: str, body: bytes, headers: dict[str, str]) -> int:
    """Send a body; return the HTTP status. A redirect is an answer like any other, and is not followed.

    Raises:
        BadInput, Unavailable: as `judge`; `outbound_failed`.
    """
    place = judge(url)
    connection = _Pinned(place)
    try:
        connection.request(
            "POST", place.path, body, {"Content-Type": "application/json", "User-Agent": "trackbed", **headers}
        )
        answer = connection.getresponse()
        answer.read(MOST_BYTES)
        return answer.status
    except (OSError, http.client.HTTPException) as fault:
        raise Unavailable("outbound_failed", host=place.host, why=str(fault)[:200]) from fault
    finally:
        connection.close()


class _Pinned(http.client.HTTPConnection):
    """Connects to the address that was judged, under the name that was asked."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.host, place.port, timeout=TIMEOUT_S)
        self._place = place

    def connect(self) -> None:
        raw = socket.create_connection((self._place.address, self._place.port), TIMEOUT_S)
        if self._place.scheme == "https":
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=self._place.host)
        self.sock = raw


def _allowed() -> frozenset[str]:
    return frozenset(one.strip() for one in os.environ.get("TRACKBED_OUTBOUND_ALLOW", "").split(",") if one.strip())


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"[:200]
