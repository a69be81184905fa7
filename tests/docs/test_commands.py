"""Every command stands in docs/reference/cli.md, as it is."""

from pathlib import Path

from trackbed.cli import context, main, page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def test_every_command_is_documented_as_it_is() -> None:
    context.take(["--lang", "en"])
    assert PAGE.read_text(encoding="utf-8") == page.page(), "run: python -m trackbed.cli.page"


def test_every_command_has_a_heading() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in main.COMMANDS if f"### `trackbed {name}`" not in text] == []
