"""Small values as people write them in a spec: names, references, sizes, times, `200 steps`, `every 4th`."""

import re
from collections.abc import Callable

from trackbed.base import units

NAME = re.compile(r"[^\W_][\w.-]{0,127}")
INPUT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DATASET_REF = re.compile(
    r"(?P<space>[^\W_][\w.-]*/)?(?P<name>[^\W_][\w.-]*)(@(?P<which>\d+|latest|b3:[0-9a-f]{6,64}|[^\W\d_][\w.-]*))?"
)
TEMPLATE_REF = re.compile(r"((?P<space>[^\W_][\w.-]*)/)?(?P<name>[^\W_][\w.-]*)(@(?P<which>[1-9]\d{0,8}|latest))?")
CHECKPOINT_REF = re.compile(r"(?P<run>[^\s@]+)@(?P<which>latest|best|\d+|b3:[0-9a-f]{64})")
PRODUCT_REF = re.compile(r"(?P<stage>[^\W_][\w-]*)\.(?P<product>[A-Za-z][A-Za-z0-9_-]*)")
IMAGE = re.compile(r"[a-z0-9][\w.:/-]*@sha256:[0-9a-f]{64}")
_LOCK_FILE = re.compile(r"\S+\.(lock|txt|toml)")
_STEPS = re.compile(r"(\d+)\s*steps?")
_NTH = re.compile(r"every(?:\s+(\d+)(?:st|nd|rd|th))?")

# The supervisor sets these; a spec that sets them too would lie to its program.
RESERVED_ENV = frozenset({
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "NNODES", "MASTER_ADDR", "MASTER_PORT",
})  # fmt: skip
_RESERVED_STARTS = ("TRACKBED_", "PET_", "MLFLOW_")


def parse_every(text: str) -> tuple[int | None, float | None, bool]:
    """Return (steps, seconds, epoch) of `200 steps`, `30m`, `epoch`; exactly one is set.

    Raises:
        ValueError: anything else, zero, or a bare number (steps or seconds?).
    """
    bare = text.strip()
    if bare == "epoch":
        return None, None, True
    if found := _STEPS.fullmatch(bare):
        if int(found[1]) == 0:
            raise ValueError(text)
        return int(found[1]), None, False
    if re.fullmatch(r"[\d.]+", bare):
        raise ValueError(text)
    seconds = units.parse_duration(bare)
    if seconds <= 0:
        raise ValueError(text)
    return None, seconds, False


def parse_nth(text: str) -> int:
    """Return n of `every 4th`; 1 of `every`. Raises ValueError for anything else."""
    found = _NTH.fullmatch(text.strip())
    if found is None or found[1] == "0":
        raise ValueError(text)
    return int(found[1] or 1)


def is_reserved_env(name: str) -> bool:
    return name in RESERVED_ENV or name.startswith(_RESERVED_STARTS)


def is_inner_path(text: str) -> bool:
    """A relative path that stays below its folder."""
    parts = text.split("/")
    return bool(text.strip("/")) and not text.startswith("/") and ".." not in parts and "\0" not in text


def is_environment(text: str) -> bool:
    """`current`, `pyproject`, a lock or list of requirements below the code, or an image by its digest."""
    if text in ("current", "pyproject") or IMAGE.fullmatch(text):
        return True
    return _LOCK_FILE.fullmatch(text) is not None and is_inner_path(text)


def _parses(parse: Callable[[str], object]) -> Callable[[object], bool]:
    def check(value: object) -> bool:
        if not isinstance(value, str):
            return True
        try:
            parse(value)
        except ValueError:
            return False
        return True

    return check


def _is_duration(value: object) -> bool:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return True
    try:
        return 0 < units.parse_duration(value) < float("inf")
    except ValueError:
        return False


def _matches(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or pattern.fullmatch(value) is not None


def _printable(limit: int) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or (0 < len(value) <= limit and value.isprintable())


# Names of the `format` keyword in the JSON Schema; each has a sentence `spec_bad_<format>` in the catalogues.
FORMATS: dict[str, Callable[[object], bool]] = {
    "name": _matches(NAME),
    "input-name": _matches(INPUT_NAME),
    "env-name": lambda value: not isinstance(value, str) or (bool(ENV_NAME.fullmatch(value)) and not is_reserved_env(value)),
    "param-name": _printable(1000),
    "tag": _printable(128),
    "dataset-ref": _matches(DATASET_REF),
    "model-ref": _matches(DATASET_REF),
    "checkpoint-ref": _matches(CHECKPOINT_REF),
    "template-ref": _matches(TEMPLATE_REF),
    "product-ref": _matches(PRODUCT_REF),
    "environment": lambda value: not isinstance(value, str) or is_environment(value),
    "inner-path": lambda value: not isinstance(value, str) or is_inner_path(value),
    "size": _parses(units.parse_size),
    "duration": _is_duration,
    "every": _parses(parse_every),
    "nth": _parses(parse_nth),
}  # fmt: skip
