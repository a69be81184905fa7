"""Names of datasets and references to their versions. Pure."""

from trackbed.base.errors import BadInput
from trackbed.domain import names
from trackbed.domain.names import Ref

__all__ = ["Ref", "checked_name", "parse_ref"]


def checked_name(name: str) -> str:
    """Return the name of a dataset in composed Unicode form, or raise BadInput (`dataset_name_bad`)."""
    good = names.name_of(name)
    if good is None:
        raise BadInput("dataset_name_bad", name=name[:120])
    return good


def parse_ref(ref: str) -> Ref:
    """Read a reference, or raise BadInput (`dataset_ref_bad`)."""
    found = names.parse_ref(ref, labels=False)
    if found is None:
        raise BadInput("dataset_ref_bad", ref=ref[:200])
    return found
