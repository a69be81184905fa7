"""What the spool of an attempt says about it: how far it came, and what its files are."""

from dataclasses import dataclass, field
from pathlib import Path

from trackbed.client.spool import spool_files
from trackbed.formats import spool as frames
from trackbed.formats.spool import Frame

_WINDOW_BYTES = 8 * 2**20


@dataclass
class Spooled:
    """`last_step`: the greatest step logged by the program (not our own vitals); `kinds`: file of the output → its kind."""

    last_step: int | None = None
    kinds: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, frame: Frame) -> None:
        try:
            if frame.header.kind == frames.METRICS:
                points = frames.decode_metrics(frame.body)
                own = {i for i, key in enumerate(points.keys) if key.startswith("system/")}
                step = max((s for s, key in zip(points.step, points.key, strict=True) if key not in own), default=None)
                if step is not None:
                    self.last_step = step if self.last_step is None else max(self.last_step, step)
            elif frame.header.kind == frames.FILE:
                said = frames.decode_document(frame.body)
                self.kinds[str(said.get("path", ""))] = str(said.get("kind", ""))
        except ValueError:
            return  # damaged: the server says so to whoever reads it


def read_spool(folder: Path) -> Spooled:
    """Read all spool files of a folder; damage is skipped."""
    spooled = Spooled()
    for path in spool_files(folder):
        with path.open("rb") as file:
            rest = b""
            while chunk := file.read(_WINDOW_BYTES):
                data = rest + chunk
                decoded = frames.decode(data, final=False)
                for frame in decoded.frames:
                    spooled.take(frame)
                rest = data[decoded.used :]
    return spooled
