"""The help of one command, in the chosen language, aligned and wrapped by what a terminal shows."""

import shutil
from collections.abc import Iterator
from typing import Any

import typer

from trackbed.cli import output
from trackbed.cli.context import has, say

_WIDEST = 100
_CLOSING = tuple(",.;:!?)\uff0c\u3002\uff1b\uff1a\uff01\uff1f\uff09\u3001\u300d\u201d")  # never at the start of a line


def wanted(arguments: list[str]) -> bool:
    """Whether help is asked for among the arguments, before a `--`."""
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--help" in before or "-h" in before


def help_of(name: str, app: Any, arguments: list[str]) -> str:
    """Return the help of a command, or of the inner command that the arguments name."""
    command: Any = typer.main.get_command(app)
    inner: dict[str, Any] = getattr(command, "commands", {})
    words = [word for word in arguments if not word.startswith("-")]
    if inner and words and words[0] in inner:
        return _text(f"{name} {words[0]}", inner[words[0]], {})
    return _text(name, command, inner)


def usage(prefix: str, command: Any) -> str:
    """`trackbed data add NAME PATH [OPTIONS]`."""
    return " ".join([prefix, *map(metavar, arguments_of(command)), *(["[OPTIONS]"] if options_of(command) else [])])


def arguments_of(command: Any) -> list[Any]:
    return [param for param in command.params if param.param_type_name == "argument"]


def options_of(command: Any) -> list[Any]:
    return [param for param in command.params if param.param_type_name == "option" and param.name != "help"]


def metavar(param: Any) -> str:
    name = str(param.metavar or param.name.upper())
    return name if param.required or param.param_type_name != "argument" else f"[{name}]"


def names(param: Any) -> str:
    value = "" if param.is_flag else f" {metavar(param)}"
    return ", ".join(sorted(param.opts, key=len)) + value


def about(param: Any) -> str:
    shown = param.default if param.show_default and param.default not in (None, "", False, [], ()) else None
    text = str(param.help or "")
    return text if shown is None else f"{text} {say('cli.default', value=shown)}"


def sentence(text: str) -> str:
    """Return a catalogue's phrase as a sentence."""
    return text[:1].upper() + text[1:] + say("cli.stop")


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` columns: at spaces, and between Chinese characters."""
    lines, line = [], ""
    for piece in _pieces(text):
        if line and output.wide((line + piece).rstrip()) > width:
            lines.append(line.rstrip())
            line = piece.lstrip()
        else:
            line += piece
    return [*lines, line.rstrip()]


def _pieces(text: str) -> Iterator[str]:
    piece = ""
    for at, char in enumerate(text):
        piece += char
        after = text[at + 1 : at + 2]
        may_break = char == " " or (output.wide(char) == 2 and after not in _CLOSING)
        if may_break:
            yield piece
            piece = ""
    yield piece


def _text(name: str, command: Any, inner: dict[str, Any]) -> str:
    width = min(shutil.get_terminal_size().columns, _WIDEST) - 1
    key = name.replace(" ", ".")
    lines = [say("cli.usage_of", line=f"trackbed {name} {say('cli.inner_usage')}" if inner else usage(f"trackbed {name}", command)), ""]  # fmt: skip
    lines += wrap(sentence(say(f"cli.about.{key}")), width)
    if has(f"cli.more.{key}"):
        lines += wrap(say(f"cli.more.{key}"), width)
    for rows in (
        [(word, say(f"cli.about.{key}.{word}")) for word in inner],
        [(metavar(param).strip("[]"), about(param)) for param in arguments_of(command)],
        [(names(param), about(param)) for param in options_of(command)],
    ):
        lines += ["", *_rows(rows, width)] if rows else []
    return "\n".join([*lines, "", *wrap(say("cli.epilog"), width)])


def _rows(rows: list[tuple[str, str]], width: int) -> Iterator[str]:
    left = max(len(name) for name, _ in rows) + 2
    for name, text in rows:
        first, *more = wrap(text, max(width - left - 2, 20))
        yield f"  {name:<{left}}{first}"
        yield from (" " * (left + 2) + line for line in more)
