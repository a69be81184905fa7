"""What a name says: steps of checkpoints, kinds of outputs, signals."""

import os
import signal

import pytest

from trackbed.supervisor.outputs import kind_of
from trackbed.supervisor.ranks import signal_number
from trackbed.supervisor.saving import counts, step_of


@pytest.mark.parametrize(
    ("name", "step"),
    [("step-200", 200), ("checkpoint-17.pt", 17), ("epoch=3-step=500.ckpt", 500), ("model-200.h5", 200), ("00042", 42),
     ("final", 7), ("v2-last.safetensors", 2)],
)  # fmt: skip
def test_the_last_number_of_a_name_is_its_step(name: str, step: int) -> None:
    assert step_of(name, 7) == step


def test_a_number_too_great_for_a_step_is_none() -> None:
    assert step_of("step-99999999999999999999", 7) == 7
    assert step_of(f"step-{2**53 - 1}", 7) == 2**53 - 1


@pytest.mark.parametrize("name", [".staged-3", "latest", "step-3.tmp", "step-3.done", os.fsdecode(b"\xff-3")])
def test_some_names_never_count(name: str) -> None:
    assert not counts(name)


@pytest.mark.parametrize(
    ("path", "start", "kind"),
    [
        ("model/config.json", b"{}", "model"),
        ("weights.safetensors", b"\x00", "model"),
        ("plot", b"\x89PNG\r\n\x1a\n", "image"),
        ("report.json", b"{}", "report"),
        ("index.html", b"<html>", "report"),
        ("samples/1.txt", b"once", "sample"),
        ("rows.csv", b"1,2", "table"),
        ("notes", "损失".encode(), "text"),
        ("blob", b"\x00\x01", "other"),
        ("empty", b"", "other"),
    ],
)
def test_an_output_is_typed_by_place_name_and_content(path: str, start: bytes, kind: str) -> None:
    assert kind_of(path, start) == kind


def test_signals_have_names_with_and_without_sig() -> None:
    assert signal_number("USR1") == signal_number("sigusr1") == signal.SIGUSR1
    assert signal_number("NOSUCH") == signal.SIGTERM
