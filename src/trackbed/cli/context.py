"""What holds for every command: language, server, JSON or not. Set once from the arguments, before a command is loaded."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trackbed.base import messages
from trackbed.base.errors import BadInput
from trackbed.base.units import parse_duration, parse_size

if TYPE_CHECKING:
    from trackbed.client.api import Client


LONG_S = 120.0  # for commands that stay: a server that is started anew does not end them


@dataclass
class Context:
    lang: str = "en"
    json: bool = False
    server: str = ""


_current = Context()


def current() -> Context:
    return _current


def take(arguments: list[str]) -> list[str]:
    """Take `--json`, `--lang`, `--server` out of the arguments, wherever they stand before a `--`."""
    global _current
    _current = Context(lang=language())
    rest: list[str] = []
    todo = list(arguments)
    while todo:
        word = todo.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            return [*rest, word, *todo]
        if word == "--json":
            _current.json = True
        elif name in ("--lang", "--server"):
            if not equals and not todo:
                raise BadInput("cli_option_needs_value", option=name)
            chosen = value if equals else todo.pop(0)
            if name == "--lang" and chosen not in messages.LANGUAGES:
                raise BadInput("cli_lang_unknown", lang=chosen, known=", ".join(messages.LANGUAGES))
            setattr(_current, name[2:], chosen)
        else:
            rest.append(word)
    return rest


def language() -> str:
    """Return zh where TRACKBED_LANG or the locale says so, else en."""
    for variable in ("TRACKBED_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(variable, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def say(code: str, /, **params: Any) -> str:
    """Return a sentence of the catalogue in the chosen language."""
    return messages.render(code, params, _current.lang)


def seconds(text: str, option: str) -> float:
    """Return the seconds of a time given with an option. Raises BadInput with the option's name."""
    try:
        return parse_duration(text)
    except ValueError:
        raise BadInput("cli_bad_duration", value=text, option=option) from None


def size_bytes(text: str) -> int:
    """Return the bytes of a size given with an option. Raises BadInput."""
    try:
        return parse_size(text)
    except ValueError:
        raise BadInput("spec_bad_size", value=text) from None


def has(code: str) -> bool:
    return code in messages.catalogue(_current.lang)


def word(code: str, fallback: str) -> str:
    """Return the word of a code, or `fallback` for one that this version does not know."""
    return say(code) if has(code) else fallback


def words(params: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a sentence with states, causes and the like in the chosen language."""
    kinds = {
        "cause": "cause",
        "state": "state",
        "asked": "order",
        "order": "order",
        "priority": "priority",
        "role": "role",
        "anomaly": "anomaly",
    }
    return {
        name: word(f"{kinds[name]}.{value}", str(value)) if name in kinds else value for name, value in params.items()
    }


def version() -> str:
    from importlib import metadata

    try:
        return metadata.version("trackbed")
    except metadata.PackageNotFoundError:
        return "0+source"


def client(*, patience_s: float = 2.0) -> "Client":
    """Return the client of the chosen server; it waits so long for one that does not answer.

    Raises:
        Unauthenticated: no server is known.
    """
    from trackbed.client.api import Client

    return Client(_current.server, patience_s=patience_s)
