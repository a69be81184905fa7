"""One thing wrong with a spec, before it is known in which line of which file it stands."""

from typing import Any, NamedTuple

from trackbed.workflow.read import Place


class Finding(NamedTuple):
    """`row` counts lines inside a command; `relies` are the values it was judged by (if one is broken, it is moot)."""

    code: str
    path: Place
    params: dict[str, Any] = {}
    row: int | None = None
    relies: tuple[Place, ...] = ()

    def moot(self, broken: set[Place]) -> bool:
        """Whether the finding only follows from a value that is itself at fault."""
        return any(_touch(one, other) for one in (self.path, *self.relies) if one for other in broken)


def _touch(one: Place, other: Place) -> bool:
    length = min(len(one), len(other))
    return one[:length] == other[:length]
