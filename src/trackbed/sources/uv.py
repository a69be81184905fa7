"""The program `uv`: found, started with the index settings of this machine, its refusals told by name."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from configparser import Error as ConfigError
from configparser import RawConfigParser
from dataclasses import dataclass
from pathlib import Path

from trackbed.base.errors import BadInput, NotFound, TrackbedError, Unavailable

_STOP_S = 5.0
_TAIL_BYTES = 16 * 1024
_PASSWORD = re.compile(r"(?<=://)[^/\s@:]*:?[^/\s@]*@")
_YANKED = re.compile(r"`?([A-Za-z0-9._-]+==[^`\s]+)`? is yanked(?: \(reason: \"?(.*?)\"?\))?", re.IGNORECASE)
_MINE = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")


@dataclass(frozen=True)
class IndexSettings:
    """Where packages come from: the environment and the flags that tell uv so."""

    env: dict[str, str]
    flags: tuple[str, ...] = ()


def find() -> str:
    """Return the path of uv: beside this interpreter, else on PATH.

    Raises:
        NotFound: `uv_missing`.
    """
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("uv")
    if found is None:
        raise NotFound("uv_missing")
    return found


def run(arguments: Sequence[str], *, log: Path, cwd: Path | None = None, beat: Callable[[], None] | None = None) -> str:
    """Run uv; what it says goes to the end of `log`, and the last of it is returned.

    `beat` is called each second; when it raises, uv is ended first.

    Raises:
        NotFound: `uv_missing`, `environment_package_missing`.
        BadInput, Unavailable: as `refusal`.
    """
    settings = index_settings(os.environ)
    argv = [find(), *arguments, "--color", "never", "--no-progress", *settings.flags]
    with log.open("ab") as sink:
        begun = sink.tell()
        process = subprocess.Popen(argv, cwd=cwd, env=settings.env, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
        try:
            while process.poll() is None:
                try:
                    process.wait(1.0)
                except subprocess.TimeoutExpired:
                    if beat is not None:
                        beat()
        finally:
            _end(process)
    said = _said(log, begun)
    if process.returncode:
        raise refusal(said)
    return said


def yanked(said: str) -> list[tuple[str, str]]:
    """Return the packages that uv warned of as yanked from their index, each with the reason given there."""
    return sorted({(one, why or "-") for one, why in _YANKED.findall(said)})


def index_settings(environ: Mapping[str, str]) -> IndexSettings:
    """Return the settings for uv. Its own hold where there are any; else those of pip, read as pip reads them.

    uv knows nothing of pip's files; pip takes the best version of all indexes, and so must uv with pip's indexes.
    """
    env = {name: value for name, value in environ.items() if name != "VIRTUAL_ENV"}
    if any(environ.get(name) for name in _MINE) or environ.get("UV_CONFIG_FILE"):
        return IndexSettings(env)
    pip = _pip_settings(environ)
    flags: list[str] = []
    if pip.get("index-url"):
        env["UV_DEFAULT_INDEX"] = pip["index-url"]
    if pip.get("extra-index-url"):
        env["UV_INDEX"] = " ".join(pip["extra-index-url"].split())
        env["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    if pip.get("find-links"):
        env["UV_FIND_LINKS"] = ",".join(pip["find-links"].split())
    if pip.get("cert") and not environ.get("SSL_CERT_FILE"):
        env["SSL_CERT_FILE"] = pip["cert"]
    if pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        flags.append("--no-index")
    return IndexSettings(env, tuple(flags))


def refusal(said: str) -> TrackbedError:
    """Return what uv said as an error of ours: hash, wheel, package, interpreter, network, or its own words."""
    text = _PASSWORD.sub("", said).strip()
    flat = " ".join(text.split())
    if found := re.search(r"Hash mismatch for `([^`]+)`.*?Expected: (.*?) Computed: (\S+)", flat):
        return BadInput("environment_hash", package=found[1], expected=found[2].strip(), computed=found[3])
    if found := re.search(r"([A-Za-z0-9._-]+(?:==\S+)?) has no (?:usable )?wheels", flat):
        return BadInput("environment_no_wheel", package=found[1], what=_end_of(text))
    if found := re.search(
        r"Because (?:there is no version of ([A-Za-z0-9._-]+==\S+)|([A-Za-z0-9._-]+) was not found in)", flat
    ):
        return NotFound("environment_package_missing", package=found[1] or found[2])
    if found := re.search(
        r"([A-Za-z0-9._-]+==\S+) (?:depends on|requires) (?:the requested )?Python\s?([<>=!~][^\s,]*)", flat
    ):
        return BadInput("environment_other_python", package=found[1], wanted=found[2])
    if re.search(
        r"error sending request|dns error|Connection refused|timed out|tcp connect|Could not connect|error trying to connect",
        flat,
        re.IGNORECASE,
    ):
        return Unavailable("environment_index_away", what=_end_of(text))
    if "unsatisfiable" in flat:
        return BadInput("environment_unsolvable", what=_end_of(text))
    return BadInput("environment_uv_refused", what=_end_of(text))


def _end_of(text: str) -> str:
    return text[-1500:]


def _said(log: Path, begun: int) -> str:
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(begun, size - _TAIL_BYTES))
        return file.read().decode("utf-8", "replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _pip_settings(environ: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in _pip_files(environ):
        parser = RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (ConfigError, UnicodeDecodeError):
            continue  # pip itself would say so; here the rest still counts
        for section in ("global", "install"):
            if parser.has_section(section):
                found |= {name.replace("_", "-"): value for name, value in parser.items(section)}
    prefix = "PIP_"
    found |= {
        name[len(prefix) :].lower().replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith(prefix) and value
    }
    return found


def _pip_files(environ: Mapping[str, str]) -> list[Path]:
    """In the order of pip: site, person, interpreter, the one named."""
    home = Path(environ.get("HOME", "~")).expanduser()
    named = environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    files = [
        Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf"), home / ".pip" / "pip.conf",
        Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf", Path(sys.prefix) / "pip.conf",
    ]  # fmt: skip
    return [*files, Path(named)] if named else files
