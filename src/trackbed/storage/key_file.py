"""The master key on the server's disk: made once, found again, changed without a moment in which no key opens the store.

keys/master.key        0600, in a folder 0700 that no job can read
keys/master.key.next   while it is changed: written and synced before the ring moves, renamed after
keys/exported          fingerprint of the key that a recovery kit was written for
"""

import secrets
from collections.abc import Sequence
from pathlib import Path

from trackbed.base import faults
from trackbed.base.errors import NotFound
from trackbed.storage.backends.port import Backend
from trackbed.storage.files import disk, sync_folder, write_durably
from trackbed.storage.ring import fingerprint, make_master, read_master, recovery_kit, rotate, sealed_with, write_master


class KeyFile:
    """The keys of one installation."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "master.key"
        self._next = folder / "master.key.next"
        self._exported = folder / "exported"

    def master(self, backend: Backend, others: Sequence[Backend] = ()) -> bytes:
        """Return the key that opens the store at this place; make one only for a place that has no store yet.

        A rotation that was cut off is brought to its end, or back: `others` are the places of the further domains.

        Raises:
            NotFound: `key_missing`, there is a store but no key for it.
        """
        sealed = sealed_with(backend)
        if self._next.exists():
            waiting = read_master(self._next)
            if fingerprint(waiting) == sealed:
                write_master(self.path, waiting)
            else:
                for other in others:
                    if sealed_with(other) == fingerprint(waiting):
                        rotate(other, waiting, read_master(self.path))
            with disk(self._next):
                self._next.unlink()
                sync_folder(self._folder)
        try:
            return read_master(self.path)
        except NotFound:
            if sealed:
                raise
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return make_master(self.path)

    def rotate(self, backend: Backend, others: Sequence[Backend] = ()) -> tuple[str, str]:
        """Make a new master key and wrap the secrets of all domains under it; return both fingerprints, old and new.

        The first domain comes last: whether it has moved says which way a rotation that was cut off goes on. A kill at
        any point leaves a key in this folder that opens the store.
        """
        old = self.master(backend, others)
        new = secrets.token_bytes(32)
        write_master(self._next, new)
        faults.point("rotate.written")
        for other in others:
            if sealed_with(other):  # marked, and not made yet
                rotate(other, old, new)
                faults.point("rotate.domain")
        rotate(backend, old, new)
        faults.point("rotate.moved")
        write_master(self.path, new)
        faults.point("rotate.named")
        with disk(self._next):
            self._next.unlink()
            sync_folder(self._folder)
        return fingerprint(old), fingerprint(new)

    def kit(self, backend: Backend) -> str:
        """The recovery kit, to be kept where the store is not."""
        return recovery_kit(self.master(backend), backend)

    def note_export(self, backend: Backend) -> None:
        """Remember that a kit of today's key is in somebody's hands."""
        with disk(self._exported):
            mark = fingerprint(self.master(backend)).encode()
            write_durably(self._exported, mark, aside=self._folder, mode=0o600, step="exported")

    @property
    def exported(self) -> bool:
        """Whether a recovery kit was written for the key of today."""
        try:
            return self._exported.read_text(encoding="ascii") == fingerprint(read_master(self.path))
        except (OSError, NotFound):
            return False
