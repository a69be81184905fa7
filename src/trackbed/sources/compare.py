"""What differs between two environments and the places they ran in. Pure."""

from collections.abc import Iterable, Iterator

from trackbed.sources.environment import differences
from trackbed.wire.environments import Difference, EnvironmentDiff, EnvironmentFacts
from trackbed.wire.surroundings import Surroundings

_ONE_VALUE = (("os", "os"), ("os", "kernel"), ("os", "libc"), ("driver", "driver"), ("cuda", "cuda"))


def compare(before: EnvironmentFacts, after: EnvironmentFacts) -> EnvironmentDiff:
    """Return every difference by area and name, and the areas of which one side tells nothing."""
    told = EnvironmentDiff(before=before.label, after=after.label)
    if before.environment is None or after.environment is None:
        told.unknown.append("package")
    else:
        for name, old, new in differences(before.environment, after.environment):
            area = name if name in ("python", "platform") else "package"
            told.differences.append(Difference(area=area, name=name, before=old, after=new))  # type: ignore[arg-type]
    if before.surroundings is None or after.surroundings is None:
        told.unknown += ["os", "driver", "cuda", "device", "variable"]
    else:
        told.differences += _around(before.surroundings, after.surroundings)
    return told


def _around(before: Surroundings, after: Surroundings) -> Iterator[Difference]:
    for area, name in _ONE_VALUE:
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            yield Difference(area=area, name=name, before=old, after=new)  # type: ignore[arg-type]
    old_devices, new_devices = _counted(before.devices), _counted(after.devices)
    if old_devices != new_devices:
        yield Difference(area="device", name="devices", before=old_devices, after=new_devices)
    for name in sorted(before.variables.keys() | after.variables.keys()):
        old, new = before.variables.get(name, ""), after.variables.get(name, "")
        if old != new:
            yield Difference(area="variable", name=name, before=old, after=new)


def _counted(devices: Iterable[str]) -> str:
    each = list(devices)
    return ", ".join(f"{each.count(name)} x {name}" for name in sorted(set(each)))
