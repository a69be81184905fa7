"""Where a step spends its time: `with run.phase("data"): …`. Costs two reads of the clock; nothing is written until a step is logged."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

PREFIX, SUFFIX, STEP = "time/", "_s", "time/step_s"


class Phases:
    """Seconds by phase since the last logged step, of the thread that logs: what runs beside the step is not part of it.

    Of phases inside each other the inner one gets its time and the outer one the rest.
    """

    def __init__(self, clock_s: Callable[[], float] = time.perf_counter) -> None:
        self._clock_s = clock_s
        self._own = threading.local()
        self.used = False
        self.current = ""  # the innermost one that is open, of the thread that opened one last

    def phase(self, name: str) -> "Phase":
        return Phase(self, str(name))

    def take(self, step: int) -> dict[str, float]:
        """Return the seconds of the step that ends here as metrics, and begin the next one; nothing before the first."""
        own = self._mine()
        if own.step is not None and step <= own.step:
            return {}  # a second call for the same step: what follows belongs to the next
        now_s = self._clock_s()
        spent, own.spent = own.spent, {}
        begun_s, own.begun_s = own.begun_s, now_s
        before, own.step = own.step, step
        if before is None:
            return {}
        steps = step - before
        return {
            STEP: (now_s - begun_s) / steps,
            **{f"{PREFIX}{name}{SUFFIX}": value / steps for name, value in spent.items()},
        }

    def _mine(self) -> Any:
        own = self._own
        if not hasattr(own, "spent"):
            own.spent, own.open, own.step, own.begun_s = {}, [], None, self._clock_s()
        return own

    def enter(self, name: str) -> None:
        """Open a phase in this thread."""
        self.used = True
        own = self._mine()
        own.open.append([name, self._clock_s(), 0.0])
        self.current = name

    def leave(self) -> None:
        """Close the innermost phase of this thread."""
        own = self._mine()
        name, begun_s, inside_s = own.open.pop()
        whole_s = self._clock_s() - begun_s
        own.spent[name] = own.spent.get(name, 0.0) + whole_s - inside_s
        if own.open:
            own.open[-1][2] += whole_s
        self.current = own.open[-1][0] if own.open else ""


class Phase:
    """One use of `with`. Raises nothing of its own and hides nothing of the body's."""

    def __init__(self, phases: Phases, name: str) -> None:
        self._phases, self._name = phases, name

    def __enter__(self) -> "Phase":
        self._phases.enter(self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._phases.leave()
