"""`trackbed completion bash|zsh|fish`: prints what a shell needs to complete our commands and options."""

from typing import Annotated, Any

import typer

from trackbed.base.errors import BadInput
from trackbed.cli.context import say
from trackbed.cli.main import ALIASES, COMMANDS, command_app

_SCRIPTS = {
    "bash": """\
_trackbed() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(trackbed __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _trackbed trackbed
""",
    "zsh": """\
#compdef trackbed
_trackbed() {
  local -a found
  found=(${(f)"$(trackbed __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  compadd -a found
  (( ${#found} )) || _files
}
compdef _trackbed trackbed
""",
    "fish": """\
complete -c trackbed -a '(trackbed __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
""",
}


def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help=say("cli.opt.shell"), show_default=False)],
) -> None:
    if shell not in _SCRIPTS:
        raise BadInput("cli_shell_unknown", shell=shell, known=", ".join(_SCRIPTS))
    print(_SCRIPTS[shell], end="")


def complete(words: list[str]) -> int:
    """Print the words that may stand where the last one (perhaps empty) is."""
    *before, last = words or [""]
    if not before:
        found = [*COMMANDS, *ALIASES]
    else:
        found = _of_command(ALIASES.get(before[0], before[0]), before[1:], options=last.startswith("-"))
    print("\n".join(word for word in found if word.startswith(last)))
    return 0


def _of_command(name: str, before: list[str], *, options: bool) -> list[str]:
    if name not in COMMANDS:
        return []
    command: Any = typer.main.get_command(command_app(name))
    inner = getattr(command, "commands", None)
    if inner is not None:
        if not before or before[0] not in inner:
            return list(inner)
        command = inner[before[0]]
    if not options:
        return []
    return [
        "--help",
        "--json",
        "--lang",
        "--server",
        *(option for param in command.params for option in param.opts if option.startswith("--")),
    ]
