"""Templates of specs: versioned, immutable once added."""

from typing import Any, Literal

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


class FormField(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One field of a form. `schema`: JSON Schema of its value; `origin`: where `value` is from."""

    field: str  # dotted
    schema: dict[str, Any] = {}
    value: Any = None
    origin: Literal["file", "template", "default"] = "default"
    default: str = ""  # in words, of the reference
    required: bool = False
    locked: bool = False
    description: str = ""


class FormRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A file as `text`, or as `values` that are to go into `text`: comments and order of it stay. Its template is looked up."""

    text: str = ""
    values: dict[str, Any] | None = None
    space: str = "default"


class FormView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The file in both forms, and the fields of the form. `template`: the version that it names."""

    text: str
    values: dict[str, Any] = {}
    fields: list[FormField] = []
    template: str = ""
    faults: list[FaultView] = []


class SpecText(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A spec in one of its forms: the text of a file, or its values. With both, the values go into the text and its comments stay."""

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
