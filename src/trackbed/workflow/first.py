"""A first spec from a look at a folder: which program, how it is started, which options it has, what else lies there.

Nothing is run and nothing is imported; Python is read as a syntax tree. What is only a guess is said as such by who shows it.
"""

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trackbed.workflow.values import INPUT_NAME, NAME

_SCRIPTS = ("train.py", "pretrain.py", "finetune.py", "main.py", "run.py", "train.sh", "run.sh", "job.sh", "main.sh")
_FOLDERS = ("", "scripts", "src", "tools")
_DATA = ("data", "dataset", "datasets", "corpus")
_LOCKS = ("uv.lock", "requirements.lock", "requirements.txt", "pyproject.toml", "environment.yml", "setup.py")
_STARTERS = ("Makefile", "README.md", "README.rst", "README")
_OUTPUT_OPTION = re.compile(r"--(out(put)?([-_](dir|path|folder))?|save[-_](dir|path)|results?([-_]dir)?)")
_DATA_OPTION = re.compile(r"--(data(set)?([-_](dir|path|root|folder))?|corpus)")
_PARALLEL = re.compile(
    r"init_process_group|DistributedDataParallel|fully_shard|FullyShardedDataParallel|LOCAL_RANK|Accelerator\("
)
_MOST_READ = 1 << 20  # bytes of a file
_MOST_OPTIONS = 24


@dataclass
class Look:
    """What was found. `params` are options of the program with a plain default; they are given to it by name."""

    project: str = "demo"
    name: str = ""
    script: str = ""
    command: str = ""
    launcher: str = ""  # "" : nothing but the default is needed
    cards: int = 0
    parallel: bool = False
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    output_option: str = ""
    data_option: str = ""
    data_folders: list[str] = field(default_factory=list[str])
    locks: list[str] = field(default_factory=list[str])


def look(folder: Path) -> Look:
    """Return what a folder holds that a first spec can say."""
    found = Look(data_folders=[name for name in _DATA if (folder / name).is_dir()])
    found.locks = [name for name in _LOCKS if (folder / name).is_file()]
    here = re.sub(r"[^\w.-]+", "-", folder.resolve().name).strip("-_.")
    if NAME.fullmatch(here):
        found.project = found.name = here
    found.script = _script(folder)
    if not found.script:
        return found
    text = _read(folder / found.script)
    found.parallel = bool(_PARALLEL.search(text))
    if found.script.endswith(".py"):
        options = list(_options(text))
        program = _program(found, folder)
    else:
        options, program = [], f"sh {shlex.quote(found.script)}"
    uses_cards = re.search(r"^\s*(import|from)\s+(torch|jax|tensorflow|transformers|lightning)\b", text, re.MULTILINE)
    found.cards = 1 if uses_cards or found.parallel or found.launcher else 0
    found.command = " ".join([program, *_arguments(found, options)])
    return found


def _script(folder: Path) -> str:
    for name in _SCRIPTS:
        for below in _FOLDERS:
            if (folder / below / name).is_file():
                return f"{below}/{name}" if below else name
    likely = sorted(path.name for path in folder.glob("*.py") if "__main__" in _read(path))
    return likely[0] if len(likely) == 1 else ""


def _program(found: Look, folder: Path) -> str:
    script = shlex.quote(found.script)
    if _started_by(folder, "torchrun", found.script) or _started_by(folder, "torch.distributed.run", found.script):
        found.launcher = "process_per_node"
        return f"torchrun {script}"
    return f"python {script}"


def _started_by(folder: Path, program: str, script: str) -> bool:
    """Whether a file beside the script starts it by a program."""
    places = [
        *(folder / name for name in _STARTERS),
        *sorted(folder.glob("*.sh")),
        *sorted(folder.glob("scripts/*.sh")),
    ]
    name = Path(script).name
    return any(
        program in line and name in line
        for place in places
        if place.is_file()
        for line in _read(place).replace("\\\n", " ").splitlines()
    )


def _options(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the long options that a program declares with argparse, each with its default (None: without a plain one)."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls.sort(key=lambda call: (call.lineno, call.col_offset))
    for call in calls:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"):
            continue
        names = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        said = {one.arg: one.value for one in call.keywords if one.arg}
        longs = [name for name in names if re.fullmatch(r"--[A-Za-z][\w-]*", name)]
        if longs and not {"action", "nargs"} & set(said):
            yield longs[0], _literal(said.get("default"))


def _literal(node: ast.expr | None) -> Any:
    try:
        value = None if node is None else ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else None


def _arguments(found: Look, options: list[tuple[str, Any]]) -> Iterator[str]:
    for option, default in options[:_MOST_OPTIONS]:
        name = option.removeprefix("--").replace("-", "_")
        if _OUTPUT_OPTION.fullmatch(option):
            found.output_option = option
            yield f'{option} "$TRACKBED_OUTPUT"'
        elif _DATA_OPTION.fullmatch(option):
            found.data_option = option  # its value is given once the data is a dataset
        elif default is not None and default != "" and (not isinstance(default, str) or _is_plain(default)):
            found.params[name] = default
            yield f"{option} {{{{params.{name}}}}}"


def _is_plain(text: str) -> bool:
    return text.isprintable() and not text.startswith(("/", "./", "~")) and len(text) <= 200


def dataset_name(folder: str, project: str) -> str:
    """Return a name for the dataset that a folder would become."""
    name = project if folder in _DATA else folder
    return name if INPUT_NAME.fullmatch(name) else "corpus"


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_READ).decode("utf-8", errors="replace")
    except OSError:
        return ""
