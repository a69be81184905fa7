"""Runs out of a server and into one: bundles, and the points of a run as a table."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from trackbed.base.errors import BadInput, Damaged
from trackbed.client.connection import Connection, Query, part
from trackbed.formats.bundle import Reader
from trackbed.wire.bundle import ImportReply

TRANSFER_S = 3600.0  # how long a server may take to put a bundle together, or to bring one in


class Exported(NamedTuple):
    """A bundle on this machine, read through and found whole."""

    path: Path
    digest: str
    runs: int
    size_bytes: int


class Portable:
    """`client.portable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def export(self, target: Path | str, *, filter: str = "", run: str = "", artifacts: bool = True) -> Exported:
        """Write a bundle of the runs of a filter, or of one run, and check every byte of it.

        Raises:
            BadInput: `export_none`, `export_many`, and as the filter says.
            Damaged: what arrived is not what was sent.
        """
        query: Query = {"filter": filter, "run": run, "artifacts": artifacts}
        with self._fetched("/api/v1/export", query, Path(target)) as (aside, headers), aside.open("rb") as file:
            reader = Reader(file)
            reader.verify()
            if reader.digest != headers.get("x-trackbed-digest"):
                raise Damaged("bundle_damaged", member="bundle.json", expected="-", found=reader.digest[:16])
            return Exported(Path(target), reader.digest, len(reader.manifest.runs), aside.stat().st_size)

    def take(self, source: Path | str, *, project: str = "", space: str = "") -> ImportReply:
        """Bring the runs of a bundle in, as foreign records. Repeated, it changes nothing.

        Raises:
            BadInput, TooLarge, Damaged: the bundle is none, is too large, or is damaged; nothing was sent.
        """
        with Path(source).open("rb") as file:
            Reader(file).verify()
            file.seek(0)
            answer = self._connection.send(
                "POST", "/api/v1/import", query={"project": project, "space": space}, content=file,
                content_type="application/zip", repeat=False, timeout_s=TRANSFER_S,
            )  # fmt: skip
        return self._connection.decode(answer, ImportReply)

    def metrics(self, run: str, target: Path | str, *, format: str = "") -> Path:
        """Write every point of a run as `csv` or `parquet` (by the file's name where nothing is said); return the place.

        Raises:
            BadInput: `export_format`; `parquet_missing`: pyarrow is not installed.
        """
        place = Path(target)
        format = format or place.suffix.removeprefix(".").lower()
        if format not in ("csv", "parquet"):
            raise BadInput("export_format", format=format or "-")
        arrow = _arrow() if format == "parquet" else None
        with self._fetched(f"/api/v1/runs/{part(run)}/metrics.csv", {"plain": True}, place) as (aside, _):
            if arrow is not None:
                _as_parquet(arrow, aside)
        return place

    @contextmanager
    def _fetched(self, path: str, query: Query, target: Path) -> Generator[tuple[Path, Any]]:
        """Fetch a file beside its place; it gets there when the block ends without an error."""
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            with self._connection.stream(path, query=query, timeout_s=TRANSFER_S) as answer, aside.open("wb") as file:
                for chunk in answer.iter_bytes(1 << 20):
                    file.write(chunk)
            yield aside, answer.headers
            aside.replace(target)
        finally:
            aside.unlink(missing_ok=True)


def _arrow() -> Any:
    try:
        for part_of_it in ("pyarrow.csv", "pyarrow.parquet"):
            import_module(part_of_it)
    except ImportError:
        raise BadInput("parquet_missing") from None
    return import_module("pyarrow")


def _as_parquet(arrow: Any, place: Path) -> None:
    whole, number = arrow.int64(), arrow.float64()
    kinds = {
        "key": arrow.string(), "step": whole, "time_us": whole, "value": number, "rank": whole, "attempt": whole,
        "incarnation": whole,
    }  # fmt: skip
    options = arrow.csv.ConvertOptions(column_types=kinds, null_values=[], strings_can_be_null=False)
    read = arrow.csv.open_csv(place, convert_options=options)
    aside = place.with_name(f"{place.name}.parquet")
    try:
        with arrow.parquet.ParquetWriter(aside, read.schema, compression="zstd") as writer:
            for batch in read:
                writer.write_batch(batch)
        aside.replace(place)
    finally:
        aside.unlink(missing_ok=True)
