"""Everything a rank needs, by digest, before it starts: code tree, data, `from`, checkpoint, environment."""

import logging
import os
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from trackbed.base.errors import Internal, NotYet, StorageFull
from trackbed.base.ids import Digest
from trackbed.clusters import NodeFolder
from trackbed.clusters.node_folder import replace
from trackbed.storage.cache import NodeCache, Trees
from trackbed.storage.store import Store
from trackbed.supervisor.lease import Server
from trackbed.supervisor.reaching import Reaching
from trackbed.wire.attempts import Assignment, InputFetch

Opener = Callable[[str], Store]  # the store at a URL, the same one again where nothing changed


@dataclass
class Inputs:
    """Where things lie on this node."""

    data: dict[str, Path] = field(default_factory=dict[str, Path])
    from_: Path | None = None


class Preparation:
    """The steps in order; `between` is called before each and may raise to end the preparation."""

    def __init__(self, assignment: Assignment, folder: NodeFolder, open_store: Opener) -> None:
        self._assignment, self._folder, self._open = assignment, folder, open_store
        self.fetches: list[InputFetch] = []  # what each input cost
        self._cache: NodeCache | None = None  # holds the trees of this attempt for as long as its supervisor lives

    @property
    def store(self) -> Store:
        if not self._assignment.store_url:
            raise NotYet("not_yet", what="a store that a node reaches by the server only")
        return self._open(self._assignment.store_url)

    def run(self, between: Callable[[], None]) -> Inputs:
        """Lay out the folder.

        Raises:
            TrackbedError: whatever the store says; what was laid out stays, and a later call goes on from there.
        """
        given, folder = self._assignment, self._folder
        folder.make()
        between()
        self._write_documents()
        if given.tree and not any(folder.work.iterdir()):
            self._with_room(lambda: self.store.get_tree(Digest(given.tree), folder.work))
        inputs = Inputs()
        for name, pin in given.data.items():
            between()
            inputs.data[name] = self._link(folder.data / name, pin.digest, one_file=pin.kind == "file")
        for name, digest in given.inputs.items():
            between()
            inputs.data[name] = self._link(folder.data / name, digest, one_file=False)
        if given.from_ is not None and given.from_.digest:
            between()
            inputs.from_ = self._link(folder.root / "from", given.from_.digest, one_file=False)
        if given.resume is not None:
            between()
            resume, begun_s = given.resume, time.monotonic()
            there = (folder.checkpoints / resume.name).exists()
            self._with_room(lambda: restore(self.store, folder.checkpoints, resume.name, resume.digest))
            size = sum(entry.size for entry in self.store.read_listing(Digest(resume.digest)))
            self._note("checkpoint", size, 0 if there else size, begun_s)
        between()
        return inputs

    def pack(self) -> Path | None:
        """Return the node's copy of the packed environment; None where there is no pack."""
        if not self._assignment.pack:
            return None
        digest, cache, begun_s = Digest(self._assignment.pack), self._node_cache(), time.monotonic()
        was_here = cache.has(digest)
        place = node_copy(cache, digest)
        size = cache.size_of(digest)
        self._note("environment", size, 0 if was_here else size, begun_s)
        return place

    def _write_documents(self) -> None:
        given = self._assignment
        stage = given.stage
        params = given.params | (stage.params if stage is not None else {})
        replace(self._folder.control / "params.json", msgspec.json.encode(params))
        job: dict[str, Any] = {
            "run": given.run_id, "ref": given.run_ref, "project": given.project, "attempt": given.number,
            "seed": given.seed, "determinism": given.determinism, "recipe": recipe_of(given),
            "stage": stage.name if stage is not None else "", "suite": stage.suite if stage is not None else "",
            "checkpoint": msgspec.to_builtins(given.checkpoint), "resumed_from_step": given.resume and given.resume.step,
        }  # fmt: skip
        replace(self._folder.control / "job.json", msgspec.json.encode(job))

    def _node_cache(self) -> NodeCache:
        self._cache = self._cache or NodeCache(self._folder.cache, self._reach())
        return self._cache

    def _with_room(self, work: Callable[[], None]) -> None:
        """Do it; where the disk is full, copies in the node's cache that nobody uses go first."""
        try:
            work()
        except StorageFull:
            cache = self._node_cache()
            if not cache.evict(cache.size_bytes()):
                raise
            work()

    def _note(self, name: str, size: int, fetched: int, begun_s: float) -> None:
        seconds = round(time.monotonic() - begun_s, 3)
        self.fetches.append(InputFetch(name=name, size_bytes=size, fetched_bytes=fetched, seconds=seconds))

    def _reach(self) -> Trees:
        """The store, and behind it the server for what other spaces hold."""
        return Reaching(self.store, lambda: Server(self._assignment)) if self._assignment.server_url else self.store

    def _link(self, place: Path, digest: str, *, one_file: bool) -> Path:
        """Put a link to the node's read-only copy, fetched once for all attempts, and return what the job sees."""
        if not digest:
            raise Internal("internal", what=f"the assignment pins no digest for {place.name}")
        cache, begun_s = self._node_cache(), time.monotonic()
        was_here = cache.has(Digest(digest))
        target = node_copy(cache, Digest(digest))
        size = cache.size_of(Digest(digest))
        self._note(place.name, size, 0 if was_here else size, begun_s)
        if not place.is_symlink():
            place.symlink_to(target)
        inside = list(target.iterdir()) if one_file else []
        return place / inside[0].name if len(inside) == 1 else place


def node_copy(cache: NodeCache, digest: Digest) -> Path:
    """Return the node's copy of a tree, read through again if anything below it changed since it was first used.

    Its modes are read-only, but a program of the same account can open them, and one of root needs not even do that.
    """
    place = cache.path_of(digest)
    stamp, now = place.with_suffix(".stamp"), _stamp(place)
    before = stamp.read_text() if stamp.exists() else now
    if before != now:
        logging.getLogger("trackbed.supervisor").warning(
            "the copy of %s was written to: it is read through again", digest
        )
        place.with_suffix(".json").unlink(missing_ok=True)
        place = cache.path_of(digest)
        now = _stamp(place)
    if before != now or not stamp.exists():
        replace(stamp, now.encode())
    return place


def _stamp(root: Path) -> str:
    """How many things there are and when one changed last, by the kernel's own time, which no program sets."""
    count, newest_ns, todo = 1, root.stat().st_ctime_ns, [root]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                count, newest_ns = count + 1, max(newest_ns, entry.stat(follow_symlinks=False).st_ctime_ns)
                if entry.is_dir(follow_symlinks=False):
                    todo.append(Path(entry.path))
    return f"{count} {newest_ns}"


def recipe_of(assignment: Assignment) -> str:
    return assignment.recipe or (assignment.stage.recipe if assignment.stage is not None else "")


def restore(store: Store, checkpoints: Path, name: str, digest: str) -> None:
    """Fetch a checkpoint under its name and point `latest` to it.

    A checkpoint that was one file is kept as a tree of that one file, and becomes a file again.
    """
    place, latest = checkpoints / name, checkpoints / "latest"
    if not place.exists():
        entries = store.read_listing(Digest(digest))
        if len(entries) == 1 and entries[0].kind == "f" and entries[0].path == name.encode():
            aside = checkpoints / f".{name}.fetched"
            if not aside.exists():
                store.get_tree(Digest(digest), aside)
            (aside / name).rename(place)
            aside.rmdir()
        else:
            store.get_tree(Digest(digest), place)
    if not latest.is_symlink():
        latest.symlink_to(name)


def free_port() -> int:
    """Return a port that nobody listens on, outside the range that outgoing connections are given."""
    for _ in range(200):
        port = random.randint(20000, 29999)
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
