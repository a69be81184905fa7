"""What `make quickstart` says before Trackbed is there: both languages, chosen as `trackbed` chooses."""

import runpy
import string
from pathlib import Path
from typing import Any

import pytest

from trackbed.cli import context

SCRIPT = Path(__file__).parents[3] / "scripts" / "install.py"


@pytest.fixture(scope="module")
def install() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def holes(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_text_is_there_in_both_languages_with_the_same_holes(install: dict[str, Any]) -> None:
    english, chinese = install["TEXTS"]["en"], install["TEXTS"]["zh"]
    assert {code: holes(text) for code, text in english.items()} == {
        code: holes(text) for code, text in chinese.items()
    }


@pytest.mark.parametrize("variable", ["TRACKBED_LANG", "LC_ALL", "LANG"])
@pytest.mark.parametrize("value", ["zh_CN.UTF-8", "zh", "en_GB.UTF-8", "C", ""])
def test_the_language_is_the_one_that_trackbed_speaks(
    install: dict[str, Any], monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    for name in ("TRACKBED_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    assert install["language"]() == context.language()


def test_the_sizes_are_said_in_chinese(
    install: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRACKBED_LANG", "zh")
    install["say_sizes"]("quickstart")
    said = capsys.readouterr().out
    assert said.startswith("正在将 Trackbed 安装到") and " MB in all" not in said
