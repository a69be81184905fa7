"""Sizes and durations as people write them, and back."""

import re

_SIZES = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
          "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}  # fmt: skip
_TIMES = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|min|s|m|h|d)")


def parse_size(text: str | int) -> int:
    """Return bytes of `40 GiB`, `64 MiB`, `1000`. Raises ValueError for anything else."""
    if isinstance(text, int):
        return text
    found = _SIZE.fullmatch(text)
    if found is None or found.group(2).lower() not in _SIZES:
        raise ValueError(text)
    return int(float(found.group(1)) * _SIZES[found.group(2).lower()])


def parse_duration(text: str | int | float) -> float:
    """Return seconds of `30m`, `12h`, `1h30m`, `45`. Raises ValueError for anything else."""
    if isinstance(text, int | float):
        return float(text)
    bare = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", bare):
        return float(bare)
    parts = _TIME.findall(bare)
    if not parts or _TIME.sub("", bare).strip():
        raise ValueError(text)
    return sum(float(number) * _TIMES[unit] for number, unit in parts)


def format_size(size_bytes: int) -> str:
    """`1536` → `1.5 KiB`."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def format_duration(seconds: float) -> str:
    """`75.3` → `1m15s`; below a minute one decimal."""
    if seconds < 60:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, secs = divmod(rest, 60)
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{secs:02d}s"
