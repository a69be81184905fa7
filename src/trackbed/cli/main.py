"""The command `trackbed`. Its help is printed without loading any command.

Exit status: 0 done · 1 the run failed, or what was checked does not hold · 2 wrong input · 3 not found · 4 conflict ·
5 not allowed · 6 try again later · 7 no space · 8 damaged · 70 our fault · 130 interrupted.
"""

import difflib
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from trackbed.base.errors import BadInput, TrackbedError
from trackbed.cli import context
from trackbed.cli.context import say

# command → module below trackbed.cli: function (one command) or typer app (a group). Texts: `cli.about.<command>`.
GROUPS: dict[str, dict[str, str]] = {
    "start": {
        "up": "up:up", "down": "down:down", "status": "status:status", "quickstart": "quickstart:quickstart", "doctor": "doctor:doctor",
        "login": "login:login", "logout": "login:logout", "whoami": "login:whoami", "completion": "completion:completion",
    },
    "runs": {
        "init": "init:init", "submit": "submit:submit", "runs": "runs:runs", "show": "show:show", "wait": "wait:wait", "logs": "logs:logs",
        "stop": "verbs:stop", "pause": "verbs:pause", "resume": "verbs:resume", "retry": "verbs:retry", "fork": "fork:fork", "hold": "verbs:hold",
        "release": "verbs:release", "compare": "compare:compare", "diff": "diff:diff", "reproduce": "reproduce:reproduce", "sync": "sync:sync",
        "export": "export:export", "import": "export:import_",
    },
    "things": {
        "artifacts": "artifacts:app", "samples": "samples:samples", "code": "code:app", "review": "review:app", "conflicts": "conflicts:conflicts", "trigger": "trigger:app", "checkpoints": "checkpoints:app", "data": "data:app", "models": "models:app", "template": "template:app", "env": "env:app", "docs": "docs:app", "lineage": "lineage:lineage",
    },
    "pool": {"queue": "queue:queue", "explain": "explain:explain", "nodes": "nodes:nodes", "store": "store:app", "keys": "keys:app"},
    "people": {"token": "token:app", "project": "project:app", "space": "space:app", "people": "people:app"},
}  # fmt: skip
COMMANDS: dict[str, str] = {name: target for group in GROUPS.values() for name, target in group.items()}
ALIASES = {"cancel": "stop"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(context.take(arguments))
    except TrackbedError as error:
        return _told(error)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of a pipe went away: not our fault, and nothing more can be said
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _unexpected(error)


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        if len(arguments) > 1 and arguments[0] == "help":
            return _run([*arguments[1:], "--help"])
        print(root_help())
        return 0
    if arguments[0] in ("--version", "-V"):
        print(f"trackbed {context.version()}")
        return 0
    if arguments[0] == "__complete":
        return _load("completion:complete")(arguments[1:])
    name = ALIASES.get(arguments[0], arguments[0])
    if name not in COMMANDS:
        raise _unknown(name)
    return invoke(name, arguments[1:])


def invoke(name: str, arguments: list[str]) -> int:
    """Run a command of the table."""
    from trackbed.cli import help

    app = command_app(name)
    bare_group = not arguments and COMMANDS[name].endswith(":app")
    if help.wanted(arguments) or bare_group:
        print(help.help_of(name, app, arguments))
        return 2 if bare_group else 0
    status = app(arguments, prog_name=f"trackbed {name}", standalone_mode=False)
    return status if isinstance(status, int) else 0


def command_app(name: str) -> Any:
    """Return the typer app of a command, with its text of help."""
    import typer

    target = _load(COMMANDS[name])
    about = say(f"cli.about.{name}")
    epilog = say("cli.epilog")
    if isinstance(target, typer.Typer):
        target.info.help, target.info.epilog = about, epilog
        return target
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(
        help=f"{about}\n\n{say(f'cli.more.{name}')}" if context.has(f"cli.more.{name}") else about, epilog=epilog
    )(target)
    return app


def root_help() -> str:
    """Return the list of commands."""
    width = max(map(len, COMMANDS)) + 2
    lines = [say("cli.usage"), ""]
    for group, commands in GROUPS.items():
        lines.append(say(f"cli.group.{group}"))
        lines += [f"  {name:<{width}}{say(f'cli.about.{name}')}" for name in commands]
        lines.append("")
    return "\n".join([*lines, say("cli.epilog"), say("cli.refs")])


def _load(target: str) -> Callable[..., Any]:
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(f"trackbed.cli.{module}"), attribute)


def _unknown(name: str) -> BadInput:
    near = difflib.get_close_matches(name, [*COMMANDS, *ALIASES], n=1, cutoff=0.5)
    if near:
        return BadInput("cli_unknown_command_near", name=name, near=near[0])
    return BadInput("cli_unknown_command", name=name)


def _told(error: TrackbedError) -> int:
    if context.current().json:
        import msgspec

        told = {"code": error.code, "params": error.params, "text": error.text(context.current().lang),
                "faults": [fault._asdict() for fault in error.faults]}  # fmt: skip
        print(msgspec.json.encode({"error": told}, enc_hook=str).decode(), file=sys.stderr)
    else:
        print(error.text(context.current().lang), file=sys.stderr)
    return error.exit_status


def _unexpected(error: Exception) -> int:
    """A wrong use that typer found (status 2), an end that it asks for, or a fault of ours (status 70)."""
    code = getattr(error, "exit_code", None)
    if hasattr(error, "format_message"):
        return _told(_wrong_use(error))
    if isinstance(code, int):
        return code
    if type(error).__name__ == "Abort":
        return 130
    if os.environ.get("TRACKBED_DEBUG"):
        raise error
    if isinstance(error, UnicodeEncodeError):  # half a character, or bytes of an argument that are no text
        return _told(BadInput("cli_not_text", text=ascii(error.object[error.start : error.end])))
    if isinstance(error, OSError) and error.filename:
        return _told(BadInput("cli_os_error", what=error.strerror or str(error), path=os.fsdecode(error.filename)))
    print(say("cli_fault", what=f"{type(error).__name__}: {error}"), file=sys.stderr)
    return 70


def _wrong_use(error: Any) -> BadInput:
    kind, param = type(error).__name__, getattr(error, "param", None)
    command = _prog(error)
    if kind == "MissingParameter" and param is not None:
        return BadInput("cli_missing", name=str(param.metavar or param.name).removesuffix("..."), command=command)
    if kind == "NoSuchOption":
        return BadInput("cli_no_option", option=error.option_name, command=command)
    what = str(error.message).rstrip(".")
    if kind == "BadParameter" and param is not None:
        named = max(param.opts, key=len) if param.param_type_name == "option" else str(param.metavar or param.name)
        return BadInput("cli_bad_value", name=named, what=what, command=command)
    return BadInput("cli_usage", what=f"{what}.", command=command)


def _prog(error: Exception) -> str:
    found = getattr(getattr(error, "ctx", None), "command_path", "")
    return found or "trackbed"


if __name__ == "__main__":
    raise SystemExit(main())
