"""`trackbed init [FOLDER]`: a first spec by a look at the folder."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trackbed.base.errors import Conflict, NotFound
from trackbed.cli import output
from trackbed.cli.context import say

if TYPE_CHECKING:
    from trackbed.workflow.first import Look

_FILE = "trackbed.yaml"


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help=say("cli.opt.init_folder"))] = Path(),
    force: Annotated[bool, typer.Option("--force", help=say("cli.opt.init_force"))] = False,
) -> None:
    from trackbed.workflow.first import look

    place = folder / _FILE
    if not folder.is_dir():
        raise NotFound("init_no_folder", path=str(folder))
    if place.exists() and not force:
        raise Conflict("init_exists", path=str(place))
    found = look(folder)
    place.write_text(write(found), encoding="utf-8")
    if output.emit_json({"path": str(place), "script": found.script, "command": found.command, "params": found.params}):
        return
    output.line(say("cli.init.written", path=place))
    for told in _told(found):
        output.line(f"  {told}")
    output.line(say("cli.init.next", path=place))


def _told(found: "Look") -> list[str]:
    told = [say("cli.init.script", script=found.script) if found.script else say("cli.init.no_script")]
    if found.launcher:
        told.append(say("cli.init.torchrun"))
    elif found.parallel:
        told.append(say("cli.init.parallel"))
    if found.params:
        told.append(say("cli.init.params", count=len(found.params)))
    told += [say("cli.init.data", folder=name) for name in found.data_folders]
    if found.locks:
        told.append(say("cli.init.locks", files=", ".join(found.locks)))
    return told


def write(found: "Look") -> str:
    """Return the text of a first spec."""
    from trackbed.workflow.first import dataset_name

    lines = [f"# {say('cli.init.head')}", f"project: {_yaml(found.project)}"]
    if found.name:
        lines.append(f"name: {_yaml(found.name)}")
    for folder in found.data_folders[:1]:
        name = dataset_name(folder, found.project)
        lines += ["", f"# {say('cli.init.data_how', command=f'trackbed data add {name} {folder}/')}",
                  f"# data: {{{name}: {name}@latest}}"]  # fmt: skip
        if found.data_option:
            variable = "TRACKBED_DATA_" + name.upper().replace("-", "_")
            lines.append(f'# {say("cli.init.data_option")} {found.data_option} "${variable}"')
    if found.params:
        lines += ["", "params:", *(f"  {name}: {_yaml(value)}" for name, value in found.params.items())]
    lines += ["", f"# {say('cli.init.cards' if found.cards else 'cli.init.no_cards')}", f"resources: {{cards: {found.cards}}}"]  # fmt: skip
    if found.launcher:
        lines += [f"# {say('cli.init.launcher')}", f"launcher: {found.launcher}"]
    lines.append("")
    if not found.command:
        lines.append(f"# {say('cli.init.no_script')}")
    lines += [f"run: {_yaml(found.command or 'python train.py')}", ""]
    return "\n".join(lines)


def _yaml(value: Any) -> str:
    """A value as YAML that reads back as itself: JSON is YAML, and words need no quotes."""
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value[:1].isalpha() and not set(value) & set(":#\n\"'{}[],&*!|>%@`\\\t"):
        return value if value.lower() not in ("true", "false", "null", "yes", "no", "on", "off") else text
    return text
