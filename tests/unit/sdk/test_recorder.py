"""What the recorder takes at the call, and what it leaves to its thread."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from trackbed.client import recorder
from trackbed.client.recorder import OnDevice


class Event:
    """A stand-in for a device event: the copy has happened once somebody waited."""

    log: list[str]

    def record(self, stream: str) -> None:
        Event.log.append(f"recorded on {stream}")

    def synchronize(self) -> None:
        Event.log.append("waited")


class Tensor:
    """A stand-in for a tensor on an accelerator, whose value the program changes in place."""

    def __init__(self, value: float, kind: str = "fakedev") -> None:
        self.value = value
        self.device = SimpleNamespace(type=kind)

    def detach(self) -> "Tensor":
        return self

    def clone(self) -> "Tensor":
        Event.log.append("cloned")
        return Tensor(self.value, self.device.type)

    def item(self) -> float:
        Event.log.append("read")
        return self.value


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    Event.log = []
    fake: Any = SimpleNamespace(
        fakedev=SimpleNamespace(Event=Event, current_stream=lambda device: f"stream of {device.type}")
    )
    monkeypatch.setitem(sys.modules, "torch", fake)


def test_a_tensor_on_a_device_is_cloned_at_the_call_and_read_after_its_copy_has_happened() -> None:
    tensor = Tensor(1.5)
    taken = recorder._taken(tensor)
    assert isinstance(taken, OnDevice)
    assert Event.log == ["cloned", "recorded on stream of fakedev"], "the caller waits for nothing"
    tensor.value = 9.0
    assert taken.read() == 1.5
    assert Event.log[-2:] == ["waited", "read"]


def test_a_tensor_of_the_host_is_read_at_once() -> None:
    assert recorder._taken(Tensor(2.5, "cpu")) == 2.5


def test_another_frameworks_array_is_read_by_the_thread() -> None:
    array = SimpleNamespace(item=lambda: 3.5)
    taken = recorder._taken(array)
    assert isinstance(taken, OnDevice) and taken.read() == 3.5


def test_what_cannot_be_taken_is_kept_as_its_error() -> None:
    class Broken:
        def detach(self) -> None:
            raise RuntimeError("device lost")

        device = SimpleNamespace(type="cpu")

        def item(self) -> float:
            raise RuntimeError("device lost")

    assert isinstance(recorder._taken(Broken()), RuntimeError)


@pytest.mark.parametrize("value", [1.0, 1, True, "text", None])
def test_other_values_are_taken_as_they_are(value: object) -> None:
    assert recorder._taken(value) is value


def test_digits_that_64_bits_do_not_hold_are_kept_as_text() -> None:
    given = {"n": 2**64, "fits": 2**64 - 1, "low": -(2**63), "deep": [1, {"x": -(2**70)}], "flag": True}
    kept = {"n": str(2**64), "fits": 2**64 - 1, "low": -(2**63), "deep": [1, {"x": str(-(2**70))}], "flag": True}
    assert recorder.digits_as_text(given) == kept
