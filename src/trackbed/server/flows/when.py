"""The condition of `register: {when: …}`: comparisons of last metric values with numbers, joined by `and`. Pure.

metrics.loss < 3.0
metrics.'eval/loss' <= 2.5 and metrics.accuracy > 0.9
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trackbed.base.errors import BadInput

_ONE = re.compile(
    r"""\s*metrics\.(?:'(?P<single>[^']+)'|"(?P<double>[^"]+)"|(?P<bare>[^\s<>=!'"]+))
        \s*(?P<op><=|>=|==|!=|=|<|>)
        \s*(?P<value>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*""",
    re.VERBOSE,
)
_AND = re.compile(r"\band\b")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    key: str
    operator: str
    value: float

    def holds(self, values: Mapping[str, float]) -> bool:
        """A metric that was never logged, or is NaN, meets no condition."""
        found = values.get(self.key)
        return found is not None and not math.isnan(found) and _COMPARE[self.operator](found, self.value)


def parse(text: str) -> tuple[Comparison, ...]:
    """Return the comparisons; an empty text gives none, which always holds.

    Raises:
        BadInput: `when_wrong` with what could not be read.
    """
    found: list[Comparison] = []
    at = 0
    while text.strip():
        one = _ONE.match(text, at)
        if one is None:
            raise BadInput("when_wrong", text=text, rest=text[at:].strip() or "(nothing)")
        found.append(Comparison(one["single"] or one["double"] or one["bare"], one["op"], float(one["value"])))
        at = one.end()
        if at == len(text):
            break
        joined = _AND.match(text, at)
        if joined is None:
            raise BadInput("when_wrong", text=text, rest=text[at:].strip())
        at = joined.end()
    return tuple(found)


def first_unmet(text: str, values: Mapping[str, float]) -> Comparison | None:
    """Return the first comparison that does not hold; None where all do."""
    return next((one for one in parse(text) if not one.holds(values)), None)
