"""metric_tags: the values of tagged metrics along the versions of one dataset or model, where two rooms know a part each."""

from trackbed.base.errors import BadInput
from trackbed.db import ReadTx
from trackbed.domain.scope import Scope
from trackbed.registry.service import made_by
from trackbed.tracking import metric_tags
from trackbed.wire.marks import TaggedValue


def along(
    tx: ReadTx, scope: Scope, tag: str, *, project: str = "", dataset: str = "", model: str = ""
) -> list[TaggedValue]:
    """Return tagged values across runs by time or, of one dataset or model, by version and then by time.

    Raises:
        BadInput: `along_one`: both a dataset and a model were named.
    """
    if dataset and model:
        raise BadInput("along_one")
    found = metric_tags.values(tx, scope, tag, project=project)
    if dataset:
        kept = [
            (_version(pin), value)
            for value in found
            for pin in value.data.values()
            if pin.rpartition("@")[0] == dataset
        ]
    elif model:
        runs = {value.run for value in found}
        made = {run: [view.version for view in made_by(tx, scope, run) if view.model == model] for run in runs}
        kept = [(version, value) for value in found for version in made[value.run]]
    else:
        return found
    for version, value in kept:
        value.version = version
    return [value for _, value in sorted(kept, key=lambda one: (one[0], one[1].created_us, one[1].key))]


def _version(pin: str) -> int:
    number = pin.rpartition("@")[2]
    return int(number) if number.isdecimal() else 0
