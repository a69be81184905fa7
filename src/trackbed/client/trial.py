"""A trial as its program sees it: so many steps, a checkpoint at the last, then leave. `TRACKBED_TRIAL_STEPS` says how many."""

import os

STEP_KEY = "trial/step"  # as workflow.trial reads it


class Trial:
    """Counts steps from the first that is asked about, so that a program that resumes is tried for as many."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._first: int | None = None
        self._noted: int | None = None

    def is_last(self, step: int) -> bool:
        """Whether the trial ends with this step."""
        if self._first is None:
            self._first = step
        return step - self._first + 1 >= self._steps

    def is_new(self, step: int) -> bool:
        """Whether the end of this step was not noted before."""
        before, self._noted = self._noted, step
        return before != step


def trial_of() -> Trial | None:
    """Return the trial that this process belongs to."""
    try:
        steps = int(os.environ.get("TRACKBED_TRIAL_STEPS", ""))
    except ValueError:
        return None
    return Trial(steps) if steps > 0 else None
