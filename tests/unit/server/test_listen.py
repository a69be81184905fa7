"""The socket that the server listens on."""

import socket

from trackbed.server.main import listen


def test_answers_do_not_wait_for_more() -> None:
    with listen("127.0.0.1", 0) as sock:
        assert sock.proto == socket.IPPROTO_TCP  # what asyncio looks at before it switches Nagle's algorithm off
