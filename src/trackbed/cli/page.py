"""Write `docs/reference/cli.md` from the commands themselves: `python -m trackbed.cli.page [folder of the repository]`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from trackbed.cli.context import has, say
from trackbed.cli.help import about, arguments_of, metavar, names, options_of, sentence, usage
from trackbed.cli.main import ALIASES, GROUPS, command_app

_HEAD = """\
# The command `trackbed`

Written by `python -m trackbed.cli.page`; a test keeps it true.

With every command: `--json` (the records of the HTTP API, for programs; errors go to stderr as `{"error": {code, params, faults, text}}`),
`--lang en|zh` (else `TRACKBED_LANG`, then the locale), `--server URL` (else `TRACKBED_URL`, then the server that `up` or `login` left in
`$TRACKBED_HOME/client/credentials.json`), `--help`. `trackbed --version` says which release this is.

`RUN` is `run_…`, `demo#17`, `demo/name` (the newest of that name), a unique prefix of at least six characters, or `-` (your last).
A time is `90s`, `30m`, `12h`, `30d`. A file of a run or dataset is checked against its digest before it is left on disk.

| exit status | meaning |
| --- | --- |
| 0 | done; of `wait`, `--follow`: the run finished |
| 1 | the run failed or was stopped; what was checked (`doctor`, `reproduce --verify`) does not hold |
| 2 | wrong input, or a thing that is not built yet |
| 3 | not found, or not for you to see |
| 4 | conflict: wrong state, or somebody was faster |
| 5 | not signed in, or not allowed |
| 6 | no answer, or too early: try again later |
| 7 | no space left |
| 8 | damaged: bytes do not match their digest |
| 70 | a fault of ours |
| 130 | interrupted |

Completion: `trackbed completion bash >> ~/.bashrc` (also `zsh`, `fish`).
"""


def page() -> str:
    """Return the text of `docs/reference/cli.md`."""
    parts = [_HEAD]
    for group, commands in GROUPS.items():
        parts.append(f"## {say(f'cli.group.{group}')}\n")
        for name in commands:
            parts += _command(name)
    return "\n".join(parts)


def _command(name: str) -> Iterator[str]:
    command: Any = typer.main.get_command(command_app(name))
    aliases = ", ".join(f"`{alias}`" for alias, real in ALIASES.items() if real == name)
    yield f"### `trackbed {name}`\n"
    yield f"{sentence(say(f'cli.about.{name}'))}{f' Also {aliases}.' if aliases else ''}\n"
    if has(f"cli.more.{name}"):
        yield f"{say(f'cli.more.{name}')}\n"
    inner: dict[str, Any] = getattr(command, "commands", {})
    if not inner:
        yield _usage(f"trackbed {name}", command)
    for word, sub in inner.items():
        yield f"{sentence(say(f'cli.about.{name}.{word}'))}\n"
        yield _usage(f"trackbed {name} {word}", sub)


def _usage(prefix: str, command: Any) -> str:
    rows = [f"| `{metavar(param)}` | {_cell(about(param))} |" for param in arguments_of(command)]
    rows += [f"| `{names(param)}` | {_cell(about(param))} |" for param in options_of(command)]
    table = "\n".join(["| | |", "| --- | --- |", *rows, ""]) if rows else ""
    return f"```\n{usage(prefix, command)}\n```\n\n{table}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    (root / "docs" / "reference" / "cli.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
