"""Cards of a node: which there are, how a process is shown only its own, how busy they are.

Where no accelerator is found, a CPU slot is a card. `Nvidia` reads the vendor's library when it is importable; it has not
met real hardware yet (`docs/reference/hardware-status.md`).
"""

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

# Shown to a process that was given no accelerator: it must not find one by itself.
_NONE_VISIBLE = {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}


@dataclass(frozen=True)
class CardFacts:
    index: int
    kind: str
    memory_bytes: int = 0
    uuid: str = ""
    healthy: bool = True


class Accelerator(Protocol):
    """One maker's cards on this node."""

    kind: str

    def cards(self) -> list[CardFacts]:
        """Return the cards by index."""
        ...

    def env(self, cards: Sequence[int]) -> dict[str, str]:
        """Return what makes exactly these cards visible, in this order."""
        ...

    def sample(self, cards: Sequence[int]) -> dict[str, float]:
        """Return how busy the cards are, as metric name → value; empty where nothing can be read."""
        ...


class CpuSlots:
    """`count` equal shares of the processors; by default one a processor, and at least two."""

    kind = "cpu"

    def __init__(self, count: int | None = None) -> None:
        self.count = max(2, os.cpu_count() or 1) if count is None else count

    def cards(self) -> list[CardFacts]:
        return [CardFacts(index, self.kind) for index in range(self.count)]

    def env(self, cards: Sequence[int]) -> dict[str, str]:
        return dict(_NONE_VISIBLE)

    def sample(self, cards: Sequence[int]) -> dict[str, float]:
        return {}


class FakeCards:
    """Cards that only exist on paper, for trying a pool out: visibility goes into `FAKE_VISIBLE_DEVICES`."""

    def __init__(self, count: int, *, kind: str = "fake", memory_bytes: int = 80 << 30) -> None:
        self.count, self.kind, self.memory_bytes = count, kind, memory_bytes

    def cards(self) -> list[CardFacts]:
        return [CardFacts(i, self.kind, self.memory_bytes, f"{self.kind}-{i}") for i in range(self.count)]

    def env(self, cards: Sequence[int]) -> dict[str, str]:
        return _NONE_VISIBLE | {"FAKE_VISIBLE_DEVICES": ",".join(map(str, cards))}

    def sample(self, cards: Sequence[int]) -> dict[str, float]:
        return {f"system/card{index}_percent": 50.0 for index in cards}


class Nvidia:
    """NVIDIA cards by pynvml, made visible by uuid so that an index means the same to every library."""

    kind = "nvidia"

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml

    def cards(self) -> list[CardFacts]:
        nvml, found = self._nvml, list[CardFacts]()
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
            found.append(CardFacts(index, self.kind, memory, _text(nvml.nvmlDeviceGetUUID(handle))))
        return found

    def env(self, cards: Sequence[int]) -> dict[str, str]:
        if not cards:
            return dict(_NONE_VISIBLE)
        uuids = [_text(self._nvml.nvmlDeviceGetUUID(self._nvml.nvmlDeviceGetHandleByIndex(i))) for i in cards]
        return {"CUDA_VISIBLE_DEVICES": ",".join(uuids), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}

    def sample(self, cards: Sequence[int]) -> dict[str, float]:
        nvml, values = self._nvml, dict[str, float]()
        for index in cards:
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                values[f"system/card{index}_percent"] = float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
                values[f"system/card{index}_memory_bytes"] = float(nvml.nvmlDeviceGetMemoryInfo(handle).used)
                values[f"system/card{index}_watts"] = float(nvml.nvmlDeviceGetPowerUsage(handle)) / 1000
            except nvml.NVMLError:
                continue  # a card that does not answer has no sample
        return values


def detect(cards: int | None = None) -> Accelerator:
    """Return the accelerators of this node; `cards` asks for that many CPU slots instead."""
    if cards is None:
        nvml = _nvml()
        if nvml is not None:
            return Nvidia(nvml)
    return CpuSlots(cards)


def by_kind(kind: str) -> Accelerator:
    """Return the accelerator of a placed card, as a supervisor on the node needs it."""
    if kind == "nvidia":
        nvml = _nvml()
        if nvml is not None:
            return Nvidia(nvml)
    return FakeCards(0, kind=kind) if kind.startswith("fake") else CpuSlots(0)


def _nvml() -> Any:
    """The vendor's library with at least one card, or None."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
        return nvml if nvml.nvmlDeviceGetCount() > 0 else None
    except Exception:  # not installed, no driver, or a driver of another version: then there are no such cards
        return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
