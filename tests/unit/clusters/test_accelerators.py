"""Cards and what makes them visible."""

from types import SimpleNamespace
from typing import Any

from trackbed.clusters.accelerators import CpuSlots, FakeCards, Nvidia, by_kind, detect


def test_a_processor_slot_is_a_card_and_there_are_at_least_two() -> None:
    assert len(CpuSlots().cards()) >= 2
    assert [card.index for card in CpuSlots(3).cards()] == [0, 1, 2]
    assert detect(4).kind == "cpu" and len(detect(4).cards()) == 4


def test_a_cpu_job_is_shown_no_accelerator() -> None:
    assert CpuSlots(2).env([0, 1])["CUDA_VISIBLE_DEVICES"] == ""


def test_fake_cards_are_visible_in_the_order_given() -> None:
    cards = FakeCards(4, memory_bytes=1 << 30)
    assert cards.cards()[3].memory_bytes == 1 << 30
    assert cards.env([3, 1])["FAKE_VISIBLE_DEVICES"] == "3,1"
    assert by_kind("fake").kind == "fake" and by_kind("cpu").kind == "cpu"


class _Broken(Exception):
    pass


def nvml(**answers: Any) -> Any:
    return SimpleNamespace(
        NVMLError=_Broken,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(total=80 << 30, used=1 << 30),
        nvmlDeviceGetUUID=lambda handle: f"GPU-{handle}".encode(),
        nvmlDeviceGetUtilizationRates=lambda handle: SimpleNamespace(gpu=75),
        nvmlDeviceGetPowerUsage=lambda handle: 350_000,
        **answers,
    )


def test_nvidia_cards_are_made_visible_by_uuid_in_local_rank_order() -> None:
    cards = Nvidia(nvml())
    assert [card.uuid for card in cards.cards()] == ["GPU-0", "GPU-1"]
    assert cards.env([1, 0])["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-0"
    assert cards.env([])["CUDA_VISIBLE_DEVICES"] == ""
    assert cards.sample([1]) == {
        "system/card1_percent": 75.0, "system/card1_memory_bytes": float(1 << 30), "system/card1_watts": 350.0,
    }  # fmt: skip
