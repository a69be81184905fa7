"""Bodies of any size: a request's as a file for a worker thread, a blob's as the stream of an answer."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from trackbed.storage.store import Reader

BLOCK = 1 << 20


class Body:
    """A request's body as a file for a worker thread; the loop gives a piece at a time, so nothing piles up."""

    def __init__(self, stream: AsyncGenerator[bytes, None], loop: asyncio.AbstractEventLoop) -> None:
        self._stream, self._loop, self._rest = stream, loop, b""

    def read(self, size: int = -1, /) -> bytes:
        if not self._rest:
            self._rest = asyncio.run_coroutine_threadsafe(_next(self._stream), self._loop).result()
        piece, self._rest = (self._rest, b"") if size < 0 else (self._rest[:size], self._rest[size:])
        return piece


async def _next(stream: AsyncGenerator[bytes, None]) -> bytes:
    async for piece in stream:
        if piece:
            return piece
    return b""


async def blocks(reader: Reader) -> AsyncIterator[bytes]:
    """Give the bytes of a blob, a block at a time, and close it."""
    try:
        while block := await asyncio.to_thread(reader.read, BLOCK):
            yield block
    finally:
        reader.close()
