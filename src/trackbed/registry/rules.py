"""Names of models and aliases, and references to versions. Pure."""

from trackbed.base.errors import BadInput
from trackbed.domain import names
from trackbed.domain.names import Ref

__all__ = ["Ref", "checked_alias", "checked_name", "parse_ref"]


def checked_name(name: str) -> str:
    """Return the name of a model in composed Unicode form, or raise BadInput (`model_name_bad`)."""
    good = names.name_of(name)
    if good is None:
        raise BadInput("model_name_bad", name=name[:120])
    return good


def checked_alias(alias: str) -> str:
    """Return an alias that cannot be taken for a number or for `latest`, or raise BadInput (`model_alias_bad`)."""
    good = names.label_of(alias)
    if good is None:
        raise BadInput("model_alias_bad", alias=alias[:120])
    return good


def parse_ref(ref: str) -> Ref:
    """Read a reference, or raise BadInput (`model_ref_bad`)."""
    found = names.parse_ref(ref, labels=True)
    if found is None:
        raise BadInput("model_ref_bad", ref=ref[:200])
    return found
