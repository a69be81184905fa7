"""`matrix:`, one run for each combination of values. Pure."""

import itertools
import math
from typing import Any

import msgspec

from trackbed.wire.spec import Spec

MOST = 256  # runs of one submit
SEED = "seed"  # names the field of the spec; every other name is a param


def count(spec: Spec) -> int:
    """Return how many runs the spec makes."""
    return math.prod(len(values) for values in spec.matrix.values())


def combinations(spec: Spec) -> list[dict[str, Any]]:
    """Return the values of each run, the last name changing fastest; one empty combination without a matrix."""
    names = list(spec.matrix)
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*spec.matrix.values())]


def with_values(spec: Spec, values: dict[str, Any]) -> Spec:
    """Return the spec of one run of the matrix."""
    params = {name: value for name, value in values.items() if name != SEED}
    seed = values.get(SEED, spec.seed)
    return msgspec.structs.replace(spec, params={**spec.params, **params}, seed=seed, matrix={})


def single_values(spec: Spec) -> list[dict[str, Any]]:
    """Return combinations in which every value occurs at least once, as few as there can be."""
    longest = max((len(values) for values in spec.matrix.values()), default=0)
    return [{name: values[at % len(values)] for name, values in spec.matrix.items()} for at in range(longest)]
