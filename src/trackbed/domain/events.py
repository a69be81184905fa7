"""What happened: who, when, why. Every change emits one in its own transaction.

`kind` is `<noun>.<verb>`, a stable code with a sentence in both catalogues (`event.<kind>`).
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Event:
    """One change. `subject` is the id of the thing changed; `space_id` decides who may read it ("" = admins)."""

    kind: str
    subject: str
    space_id: str = ""
    run_id: str = ""
    attempt_id: str = ""
    data: dict[str, Any] = field(default_factory=dict[str, Any])
