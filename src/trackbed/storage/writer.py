"""From files to frames: cut, look up, gather what is new beside its neighbours, hand it to the packs.

    file ─ chunks ─┬ known: left alone
                   └ new: a run ─┬ between two known chunks and short ─ delta frame against what stood there
                                 └ else ─ plain frame

Pages of manifests go the same way, in frames of their own, against the page that began or ended with the same chunk.
One window of the file, one batch of lookups and the frames in flight are in memory, whatever the file's size.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Protocol

from blake3 import blake3

from trackbed.base.errors import Damaged
from trackbed.base.ids import FileDigest
from trackbed.formats import frame as frames
from trackbed.formats import manifest
from trackbed.formats.cut import Cutter, read_chunks
from trackbed.formats.footer import FileRow
from trackbed.formats.manifest import Root, Row
from trackbed.formats.tensors import PIECE, Peek, Stretch, round_to_bf16
from trackbed.storage import delta
from trackbed.storage.content import Contents
from trackbed.storage.delta import Slice
from trackbed.storage.former import Former
from trackbed.storage.index import ChunkAt, ChunkIndex, FrameAt
from trackbed.storage.keys import Keys
from trackbed.storage.packs import PackWriter, Piece, Plan
from trackbed.storage.reader import HINT, FrameReader, Standing, Want, hints_of, names_of
from trackbed.storage.transfer import one_ahead

FRAME_BYTES = 512 * 1024
SMALL = 128 * 1024  # a file below this is one chunk
_BATCH_CHUNKS, _BATCH_BYTES = 256, 4 * 1024 * 1024
_FRAME_ROWS = 8192
_TENSOR_DEPTH = 4  # frames under a piece of a tensor that is stored as its difference
_TENSOR_LEAST = 64 * 1024  # a smaller piece shares a frame with its neighbours


class Source(Protocol):
    def readinto(self, buffer: memoryview, /) -> int: ...


@dataclass
class _Offer:
    chunk_id: bytes
    data: bytes | memoryview
    role: int = frames.DATA
    files: tuple[FileRow, ...] = ()
    width: int = 1  # of its numbers, if it is a piece of a tensor
    like: bytes = b""  # id of the piece that stood there before
    rounds: tuple[bytes, ...] = ()  # ids of the pieces that these numbers are, rounded


@dataclass
class _Gather:
    """Chunks that will share a frame, and what it is compressed against."""

    pieces: list[Piece] = field(default_factory=list[Piece])
    size: int = 0
    slices: list[Slice] = field(default_factory=list[Slice])

    def takes(self, size: int, slices: list[Slice], most: int) -> bool:
        return not self.pieces or (
            self.size + size <= most
            and sum(one.length for one in [*self.slices, *slices]) <= delta.MOST_BASE
            and len(self.pieces) < _FRAME_ROWS
            and len(self.slices) + len(slices) <= frames.MAX_BASE_FRAMES
        )

    def add(self, pieces: list[Piece], slices: list[Slice]) -> None:
        self.pieces += pieces
        self.size += sum(len(piece.data) for piece in pieces)
        self.slices += slices


class _Lane:
    """A stream of chunks of one sort. Runs of new ones become frames."""

    def __init__(self, packs: PackWriter, index: ChunkIndex, reader: FrameReader, level: int) -> None:
        self._packs, self._index, self._reader, self._level = packs, index, reader, level
        self._former: Former | None = None
        self._left_id: bytes | None = None
        self._plain, self._delta = _Gather(), _Gather()
        self._run: list[Piece] = []
        self._run_size = 0
        self._left: ChunkAt | None = None
        self._long = False

    def begin(self, former: Former | None) -> None:
        """A file begins that replaces another."""
        self._former = former

    def end(self) -> None:
        """The file ends: what comes next did not stand beside it."""
        if self._former:
            self.known(None, None)
            self._former = None

    def known(self, chunk_id: bytes | None, place: ChunkAt | None) -> None:
        """A chunk that is here stands next; without a place it is on its way in this very write."""
        if self._run:
            self._close_run(chunk_id, place)
        self._left_id, self._left, self._long = chunk_id, place, False

    def new(self, piece: Piece) -> None:
        if self._long:
            self._gather_plain([piece])
            return
        self._run.append(piece)
        self._run_size += len(piece.data)
        if self._run_size > delta.MOST_NEW:
            self._gather_plain(self._take_run())
            self._long = True

    def new_beside(self, piece: Piece, like: ChunkAt | None) -> None:
        """A chunk that is new, and a known one that it may be a near copy of."""
        slices = delta.whole(like) if like else []
        if slices and len(piece.data) <= delta.MOST_NEW:
            self._gather_delta([piece], slices)
        else:
            self._gather_plain([piece])

    def numbers(self, piece: Piece, width: int, like: ChunkAt | None) -> Slice:
        """A new piece of a tensor, in a frame of its own, and the piece that stood there before. Return where it will be."""
        self.known(None, None)
        plan = Plan(width=width)
        if like and like.frame.depth < _TENSOR_DEPTH and like.length == len(piece.data):
            slices = delta.whole(like)
            plan = Plan(tuple(one.base for one in slices), self._read(slices), delta.depth_over(slices), width)
        frame_id = self._packs.frame([piece], plan)
        return _coming(frame_id, plan.depth, len(piece.data))

    def rounded(self, piece: Piece, slices: list[Slice]) -> None:
        """A new piece whose numbers are others, rounded: only where those lie is written."""
        self.known(None, None)
        plan = Plan(tuple(one.base for one in slices), None, delta.depth_over(slices), rounded=True)
        self._packs.frame([piece], plan)

    def finish(self) -> None:
        self.known(None, None)
        self._flush_plain()
        self._flush_delta()

    def _close_run(self, right_id: bytes | None, right: ChunkAt | None) -> None:
        size = self._run_size
        slices = self._in_former(right_id, size) or delta.replaced(self._left, right, size)
        if slices:
            self._gather_delta(self._take_run(), slices)
        else:
            self._gather_plain(self._take_run())

    def _in_former(self, right_id: bytes | None, size: int) -> list[Slice]:
        if not self._former:
            return []
        ids = self._former.between(self._left_id, right_id, delta.reach_of(size))
        places = self._index.chunks(ids, owner=self._packs.owner)
        return delta.whole(*(places[one] for one in ids if one in places and not places[one].fading))

    def _take_run(self) -> list[Piece]:
        run, self._run, self._run_size = self._run, [], 0
        return run

    def _gather_plain(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            if not self._plain.takes(len(piece.data), [], FRAME_BYTES):
                self._flush_plain()
            self._plain.add([piece], [])

    def _gather_delta(self, pieces: list[Piece], slices: list[Slice]) -> None:
        if not self._delta.takes(sum(len(piece.data) for piece in pieces), slices, delta.MOST_NEW):
            self._flush_delta()
        self._delta.add(pieces, slices)

    def _flush_plain(self) -> None:
        full, self._plain = self._plain, _Gather()
        if full.pieces:
            self._packs.frame(full.pieces, Plan(level=self._level))

    def _flush_delta(self) -> None:
        full, self._delta = self._delta, _Gather()
        if not full.pieces:
            return
        slices = delta.merged(full.slices)
        bases = tuple(one.base for one in slices)
        self._packs.frame(full.pieces, Plan(bases, self._read(slices), delta.depth_over(slices), level=self._level))

    def _read(self, slices: list[Slice]) -> Callable[[], bytes]:
        def read() -> bytes:
            return b"".join(self._reader.plain(one.frame)[one.start : one.start + one.length] for one in slices)

        return read


def _coming(frame_id: bytes, depth: int, size: int) -> Slice:
    """The whole of a frame of one chunk that is on its way to a pack. It is at most so deep."""
    return Slice(FrameAt(frame_id, b"", 0, 0, 0, depth, size, ()), 0, size)


class ContentWriter:
    """One write: files in, packs out. `known` tells which ids were on their way before they could be looked up."""

    def __init__(
        self,
        packs: PackWriter,
        keys: Keys,
        index: ChunkIndex,
        reader: FrameReader,
        contents: Contents,
        cutter: Cutter,
        *,
        level: int = 2,
    ) -> None:
        self._packs, self._keys, self._index, self._cutter = packs, keys, index, cutter
        self._contents = contents
        self._standing = Standing(index)
        self._data, self._pages = _Lane(packs, index, reader, level), _Lane(packs, index, reader, level)
        self._offers: list[_Offer] = []
        self._offered = 0
        self._fresh: set[bytes] = set()  # new in this write
        self._coming: dict[bytes, Slice] = {}  # pieces of tensors of this file that are on their way
        self.relied: set[bytes] = set()  # packs with chunks that were here
        self.new_chunks = 0

    def small(self, data: bytes) -> FileDigest:
        """Take a file of one chunk."""
        digest = FileDigest(blake3(data).hexdigest())
        self._offer(_Offer(self._keys.content_id(digest), data))
        return digest

    def large(
        self, source: Source, *, path: bytes = b"", expect: int = 0, on_bytes: "_OnBytes | None" = None
    ) -> tuple[FileDigest, int]:
        """Take a file by its stream, in bounded memory. Return its digest and size. `path` helps to find its former version,
        `expect` is about how many bytes will come."""
        self._cutter.expect(expect)
        hasher, pages, size, first = blake3(), _Pages(self), 0, b""
        with closing(one_ahead(read_chunks(source, self._cutter))) as windows:
            for views in windows:
                if not first and views:
                    first = self._keys.chunk_id(views[0])
                    former = self._contents.former(first=first, path=self._named(path))
                    self._settle()
                    self._data.begin(Former(former) if former else None)
                count = sum(len(view) for view in views)
                if views:
                    hasher.update(memoryview(views[0].obj)[:count])  # they lie one behind the other: hashed in one go
                for view in views:
                    chunk_id = self._keys.chunk_id(view)
                    self._offer(_Offer(chunk_id, view))
                    pages.row(Row(chunk_id, len(view)))
                self._settle()  # the window is used again
                size += count
                if on_bytes:
                    on_bytes(count)
        self._data.end()
        digest = FileDigest(hasher.hexdigest())
        pages.root(digest, size, first, self._named(path))
        return digest, size

    def tensors(
        self,
        source: Source,
        pieces: list[Stretch],
        *,
        path: bytes,
        rounding: "Rounding | None" = None,
        on_bytes: "_OnBytes | None" = None,
    ) -> tuple[FileDigest, int]:
        """Take a file cut at its tensors; what comes behind them is cut by size. A piece may be stored as its difference to
        the one of the former version."""
        hasher, pages, size, first = blake3(), _Pages(self), 0, b""
        former: Iterator[Want] = iter(())
        for piece in itertools.chain(pieces, itertools.repeat(Stretch(PIECE, 1))):
            if not (data := _exactly(source, piece.size)):
                break
            hasher.update(data)
            chunk_id = self._keys.chunk_id(data)
            if not first:
                first = chunk_id
                former = self._contents.former(first=first, path=self._named(path)) or former
            like = _next(former)
            same = like.chunk_id if like and like.size == len(data) else b""
            width = piece.width if len(data) % piece.width == 0 else 1
            rounds = rounding.of(size, data, self._keys) if rounding else ()
            self._offer(_Offer(chunk_id, data, width=width, like=same, rounds=rounds))
            if rounding:
                rounding.ids[size] = chunk_id
            pages.row(Row(chunk_id, len(data)))
            size += len(data)
            if on_bytes:
                on_bytes(len(data))
        self._settle()
        self._coming.clear()
        digest = FileDigest(hasher.hexdigest())
        pages.root(digest, size, first, self._named(path))
        return digest, size

    def finish(self) -> set[bytes]:
        """Write out everything. Return the packs, new and old, that the content of this write lies in."""
        self._settle()
        self._data.finish()
        self._pages.finish()
        return self._packs.finish() | self.relied

    def page(self, rows: list[Row], level: int) -> Row:
        data = manifest.write_page(rows, level=level)
        chunk_id = self._keys.chunk_id(data)
        self._offer(_Offer(chunk_id, data, frames.PAGE, tuple(hints_of(self._keys, chunk_id, frames.PAGE, data))))
        return Row(chunk_id, sum(row.size for row in rows))

    def root(self, root: Root, first: bytes, path: bytes) -> None:
        data = manifest.write_root(root)
        chunk_id = self._keys.chunk_id(data)
        row = FileRow(self._keys.file_id(root.digest), root.size, chunk_id, root.levels)
        hints = hints_of(self._keys, chunk_id, frames.ROOT, data)
        self._offer(
            _Offer(
                chunk_id,
                data,
                frames.ROOT,
                (row, *hints, *names_of(self._keys, chunk_id, root.size, first=first, path=path)),
            )
        )

    def _named(self, path: bytes) -> bytes:
        return self._packs.owner + path if path else b""

    def _offer(self, offer: _Offer) -> None:
        self._offers.append(offer)
        self._offered += len(offer.data)
        if len(self._offers) >= _BATCH_CHUNKS or self._offered >= _BATCH_BYTES:
            self._settle()

    def _settle(self) -> None:
        """Look up what was offered, and pass it to its lane."""
        offers, self._offers, self._offered = self._offers, [], 0
        places = self._index.chunks([offer.chunk_id for offer in offers], owner=self._packs.owner)
        for offer in offers:
            place = places.get(offer.chunk_id)
            if place and (place.fading or not self._standing(place.frame)):
                place = None  # being collected, or a delta of what is lost: written again
            lane = self._data if offer.role == frames.DATA else self._pages
            if offer.chunk_id in self._fresh:
                lane.known(offer.chunk_id, None)
            elif place and (offer.role != frames.ROOT or self._index.file(offer.files[0].file_id)):
                self.relied.add(place.frame.pack_id)
                lane.known(offer.chunk_id, place)
            else:
                self._fresh.add(offer.chunk_id)
                self.new_chunks += 1
                piece = Piece(offer.chunk_id, bytes(offer.data), offer.role, offer.files)
                if offer.rounds and (sources := self._sources(offer.rounds)):
                    lane.rounded(piece, sources)
                elif offer.width > 1 and len(offer.data) >= _TENSOR_LEAST:
                    self._coming[offer.chunk_id] = lane.numbers(piece, offer.width, self._place(offer.like))
                elif offer.role == frames.DATA:
                    lane.new(piece)
                else:
                    lane.new_beside(piece, self._like(offer))

    def _like(self, offer: _Offer) -> ChunkAt | None:
        """The page before the edit, if there was one."""
        hints = self._index.files([row.file_id for row in offer.files if row.levels == HINT])
        for row in hints.values():
            if place := self._place(row.root):
                return place
        return None

    def _sources(self, ids: tuple[bytes, ...]) -> list[Slice]:
        """Where pieces of tensors lie or will lie, all of them; none if one is not to be had."""
        slices: list[Slice] = []
        for chunk_id in ids:
            if coming := self._coming.get(chunk_id):
                slices.append(coming)
            elif place := self._place(chunk_id):
                slices += delta.whole(place)
        return slices if len(slices) == len(ids) else []

    def _place(self, chunk_id: bytes) -> ChunkAt | None:
        """A known chunk to compress against: its pack is relied on from here."""
        place = self._index.chunk(chunk_id, owner=self._packs.owner) if chunk_id else None
        if place is None or place.fading or not self._standing(place.frame):
            return None
        self.relied.add(place.frame.pack_id)
        return place


class Rounding:
    """Which pieces of a file of tensors may be other pieces of it, rounded to BF16."""

    def __init__(self, places: dict[int, int], peek: Peek) -> None:
        self._places, self._peek = places, peek
        self.ids: dict[int, bytes] = {}  # of the pieces so far, by place

    def of(self, place: int, data: bytes, keys: Keys) -> tuple[bytes, ...]:
        """Ids of the pieces that `data` is when they are rounded: all numbers compared. None: ()."""
        source = self._places.get(place)
        if source is None:
            return ()
        ids: list[bytes] = []
        parts: list[bytes] = []
        for at in range(source, source + 2 * len(data), PIECE):
            parts.append(self._peek(at, min(PIECE, source + 2 * len(data) - at)))
            ids.append(keys.chunk_id(parts[-1]))
            if self.ids.get(at) != ids[-1]:
                return ()
        return tuple(ids) if round_to_bf16(b"".join(parts)) == data else ()


class _OnBytes(Protocol):
    def __call__(self, count: int, /) -> None: ...


class _Pages:
    """Rows of a file as they come; pages leave as soon as they end, level over level."""

    def __init__(self, writer: ContentWriter) -> None:
        self._writer = writer
        self._levels: list[list[Row]] = [[]]

    def row(self, row: Row, level: int = 0) -> None:
        if level == len(self._levels):
            self._levels.append([])
        rows = self._levels[level]
        rows.append(row)
        if manifest.ends_page(len(rows), row.chunk_id):
            self._end_page(level)

    def root(self, digest: FileDigest, size: int, first: bytes, path: bytes) -> None:
        level = 0
        while level + 1 < len(self._levels):
            if self._levels[level]:
                self._end_page(level)
            level += 1
        self._writer.root(Root(digest, size, level + 1, self._levels[level]), first, path)

    def _end_page(self, level: int) -> None:
        rows, self._levels[level] = self._levels[level], []
        self.row(self._writer.page(rows, level + 1), level + 1)


def _exactly(source: Source, size: int) -> bytes:
    """The next bytes of a stream; fewer where it ends, which the caller's check of the file finds."""
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size and (count := source.readinto(view[at:])):
        at += count
    return bytes(view[:at])


def _next(former: Iterator[Want]) -> Want | None:
    """The next piece of the former version; none once it cannot be read."""
    try:
        return next(former, None)
    except Damaged:
        return None
