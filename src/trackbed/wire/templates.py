"""Templates of specs: versioned, immutable once added."""

from typing import Any

import msgspec

from trackbed.wire.problems import FaultView
from trackbed.wire.reason import Reason
from trackbed.wire.spec import Spec


class TemplateRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A template file. `expected`: the newest version that its writer saw; null: whatever it is."""

    text: str
    space: str = "default"
    expected: int | None = None


class TemplateVersionView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Immutable. `spec`: values of a run that the template gives; `schema`: the JSON Schema of all that it rules."""

    name: str
    version: int
    space: str = "default"
    description: str = ""
    digest: str = ""  # of the text
    text: str = ""
    spec: dict[str, Any] = {}
    schema: dict[str, Any] = {}
    required: list[str] = []
    locked: list[str] = []
    created_us: int = 0
    created_by: str = ""
    unchanged: bool = False  # answer to an add that made nothing new


class TemplateView(msgspec.Struct, kw_only=True, omit_defaults=True):
    name: str
    space: str
    latest: int
    versions: list[TemplateVersionView] = []


class SpecText(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A spec in one of its forms: the text of a file, or its values."""

    text: str | None = None
    values: dict[str, Any] | None = None


class SpecRead(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The same spec in all forms. Where it has faults `spec` is its sound part, and nothing may be submitted.

    A spec that names a template has no faults of its own here: the template may give what it lacks; a dry run judges both.
    """

    text: str
    values: dict[str, Any]
    spec: Spec
    faults: list[FaultView] = []
    warnings: list[Reason] = []
