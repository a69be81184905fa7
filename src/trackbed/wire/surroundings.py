"""What is around a process besides its packages, as found on a node."""

import msgspec


class Surroundings(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a process finds besides its packages. Values of variables whose name sounds like a secret are masked."""

    os: str = ""
    kernel: str = ""
    libc: str = ""
    driver: str = ""
    cuda: str = ""
    devices: list[str] = []
    variables: dict[str, str] = {}


class EnvironmentFound(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a supervisor tells of its node, once for each attempt."""

    surroundings: Surroundings
    python: str = ""
    drift: list[str] = []
