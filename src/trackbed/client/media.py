"""Tables, pictures, texts and histograms as files of the output folder."""

import hashlib
import io
import json
import math
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import quote


class Made(NamedTuple):
    """A file to write: its path below the output folder, its kind, its bytes."""

    path: str
    kind: str
    data: bytes


def table(name: str, step: int, rows: Any, columns: Sequence[str] = ()) -> Made:
    """Return `{"columns", "rows"}` as JSON; rows are sequences, or dicts whose keys become the columns."""
    listed: list[Any] = (
        list(rows.values.tolist()) if hasattr(rows, "columns") and hasattr(rows, "values") else list(rows)
    )
    names = [str(column) for column in (columns or getattr(rows, "columns", ()))]
    if listed and isinstance(listed[0], Mapping):
        names = names or list(dict.fromkeys(str(key) for row in listed for key in row))
        listed = [[row.get(column) for column in names] for row in listed]
    document = {"columns": names, "rows": [[_cell(cell) for cell in row] for row in listed]}
    data = json.dumps(document, ensure_ascii=False, allow_nan=False, default=str).encode()
    return Made(_path("tables", name, step, ".json"), "table", data)


def text(name: str, step: int, content: str) -> Made:
    return Made(_path("texts", name, step, ".txt"), "text", str(content).encode("utf-8", "surrogateescape"))


def image(name: str, step: int, picture: Any) -> Made:
    """Return a picture as its own format, or as PNG where it was an array.

    Raises:
        ValueError: neither a path, bytes, a thing with `save`, nor an array of height, width and 1, 3 or 4 channels.
    """
    if isinstance(picture, bytes | bytearray):
        data = bytes(picture)
        suffix = ".jpg" if data[:2] == b"\xff\xd8" else ".gif" if data[:3] == b"GIF" else ".png"
        return Made(_path("images", name, step, suffix), "image", data)
    if isinstance(picture, str | Path):
        return Made(_path("images", name, step, Path(picture).suffix or ".png"), "image", Path(picture).read_bytes())
    if hasattr(picture, "save") and hasattr(picture, "mode"):
        return Made(_path("images", name, step, ".png"), "image", _by_saving(picture))
    return Made(_path("images", name, step, ".png"), "image", _png(picture))


def histogram(name: str, step: int, values: Any, bins: int = 64) -> Made:
    """Return `{"edges", "counts", "non_finite"}` as JSON: bins + 1 edges from the least to the greatest finite value."""
    numbers = [float(value) for value in _flat(values)]
    finite = [value for value in numbers if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    if low == high:
        room = max(0.5, abs(low) * 1e-6)
        low, high = low - room, high + room
    edges = [low * ((bins - at) / bins) + high * (at / bins) for at in range(bins + 1)]
    counts = [0] * bins
    for value in finite:
        counts[min(max(bisect_right(edges, value) - 1, 0), bins - 1)] += 1
    document = {"edges": edges, "counts": counts, "non_finite": len(numbers) - len(finite)}
    return Made(_path("histograms", name, step, ".json"), "histogram", json.dumps(document).encode())


def place_for(source: Path, name: str, taken: Mapping[str, Path]) -> Path:
    """Return where a file is kept below the output: under its name, with folders in front where another one has it.

    Raises:
        ValueError: a `name` that leads out of the output.
    """
    if name:
        place = Path(name)
        if place.is_absolute() or ".." in place.parts or not place.parts:
            raise ValueError(f"{name!r} is no place below the output")
        return place
    parts = source.parts
    for count in range(1, len(parts)):
        place = Path(*parts[-count:])
        if taken.get(place.as_posix(), source) == source:
            return place
    return Path(source.name)


def sample(
    name: str, step: int, inputs: Any, outputs: Any, facts: Mapping[str, Any], mask: Sequence[str], rank: int
) -> Made:
    """Return one pair of input and output as JSON; fields of the inputs that are to be masked are there by digest only."""
    shown, masked = _masked(inputs, frozenset(mask), "")
    document = {
        "version": 1, "name": name, "step": step, "rank": rank, "inputs": shown, "outputs": outputs,
        "facts": dict(facts), "masked": masked,
    }  # fmt: skip
    data = json.dumps(_plain(document), ensure_ascii=False, allow_nan=False).encode()
    where = name if rank == 0 else f"{name}/rank-{rank}"
    return Made(_path("samples", where, step, ".json"), "sample", data)


def _masked(value: Any, names: frozenset[str], path: str) -> tuple[Any, list[str]]:
    """Put a digest in the place of every field that is called so, at any depth; return the paths too."""
    if not isinstance(value, Mapping) or not names:
        return value, []
    found: dict[str, Any] = {}
    masked: list[str] = []
    for key, inner in cast(Mapping[Any, Any], value).items():
        here = f"{path}.{key}" if path else str(key)
        if str(key) in names:
            digest = hashlib.sha256(json.dumps(_plain(inner), ensure_ascii=False, sort_keys=True).encode()).hexdigest()
            found[str(key)] = {"masked": digest}
            masked.append(here)
        else:
            found[str(key)], below = _masked(inner, names, here)
            masked += below
    return found, masked


def _plain(value: Any) -> Any:
    """Return what JSON holds: tensors and arrays as lists, non-finite numbers as words, the rest as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in cast(Sequence[Any], value)]
    if hasattr(value, "detach"):
        value = value.detach()
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if value is None or isinstance(value, str | int | float | bool):
        return _cell(value)
    return str(value)


def _path(folder: str, name: str, step: int, suffix: str) -> str:
    """Return a path that stays inside its folder whatever the name is; its slashes make folders."""
    parts = ["".join(map(_quoted, part)) if part.strip(".") else "%2E" * len(part) for part in name.split("/") if part]
    return f"{folder}/{'/'.join(parts) or 'unnamed'}-{step}{suffix}"


def _quoted(char: str) -> str:
    """Keep letters of any script and a few signs: a Chinese name is a good file name."""
    good = char.isalnum() or char in "_-.@+=,()[] " or (char.isprintable() and ord(char) > 0x7F)
    return char if good else quote(char, safe="", errors="replace")


def _cell(cell: Any) -> Any:
    cell = cell.item() if hasattr(cell, "item") else cell
    if isinstance(cell, float) and not math.isfinite(cell):
        return "NaN" if math.isnan(cell) else "Infinity" if cell > 0 else "-Infinity"
    return cell


def _flat(values: Any) -> Iterable[Any]:
    if hasattr(values, "detach"):
        values = values.detach().flatten()
    listed = values.tolist() if hasattr(values, "tolist") else values
    for value in listed if isinstance(listed, Iterable) else [listed]:
        if isinstance(value, Iterable):
            yield from _flat(value)
        else:
            yield value


def _by_saving(picture: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG")
    return buffer.getvalue()


def _png(array: Any) -> bytes:
    """Return an 8-bit PNG of an array; floats are taken as 0 to 1."""
    shape = tuple(int(size) for size in array.shape)
    height, width, channels = (*shape, 1) if len(shape) == 2 else shape if len(shape) == 3 else (0, 0, 0)
    kind = {1: 0, 3: 2, 4: 6}.get(channels)
    if kind is None or not height or not width:
        raise ValueError(f"no picture has the shape {shape}; height x width (x 1, 3 or 4) is wanted")
    samples = list(_flat(array))
    if any(isinstance(sample, float) for sample in samples):
        samples = [round(min(max(sample, 0.0), 1.0) * 255) for sample in samples]
    flat = bytes(min(max(int(sample), 0), 255) for sample in samples)
    row = width * channels
    lines = b"".join(b"\0" + flat[start : start + row] for start in range(0, len(flat), row))
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data)) for tag, data in chunks
    )
