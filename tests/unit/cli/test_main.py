"""The command line: finds commands without loading them, speaks two languages, ends with the status of the error's class."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from trackbed.base.errors import BadInput, Conflict, Denied, NotFound, TrackbedError, Unavailable
from trackbed.base.messages import catalogue
from trackbed.cli import context, main, output

CLI = Path(main.__file__).parent


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("TRACKBED_LANG", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")


def test_help_names_every_command_and_loads_none(capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import sys; from trackbed.cli.main import main; main(['--help'])\n"
        "heavy = {'typer', 'rich', 'httpx', 'msgspec', 'jsonschema', 'sqlalchemy', 'litestar', 'torch'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(f"\n  {name} " in done.stdout for name in main.COMMANDS)


@pytest.mark.parametrize("name", ["submit", "runs", "up", "quickstart", "data", "reproduce", "logs", "doctor"])
def test_help_of_a_command_loads_nothing_that_it_needs_to_work(name: str) -> None:
    code = (
        f"import sys; from trackbed.cli.main import main; main(['{name}', '--help'])\n"
        "heavy = {'httpx', 'jsonschema', 'ruamel.yaml', 'sqlalchemy', 'litestar', 'torch', 'rich.markdown'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Usage: trackbed" in done.stdout


def test_a_misspelt_command_is_answered_with_the_likely_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["sumbit"]) == 2
    assert "did you mean `trackbed submit`" in capsys.readouterr().err
    assert main.main(["qqqqqq"]) == 2
    assert "trackbed --help" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"),
    [(BadInput("x"), 2), (NotFound("x"), 3), (Conflict("x"), 4), (Denied("x"), 5), (Unavailable("x"), 6)],
)
def test_the_exit_status_is_that_of_the_errors_class(
    monkeypatch: pytest.MonkeyPatch, error: TrackbedError, status: int
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(main, "invoke", fail)
    assert main.main(["status"]) == status


def test_a_wrong_option_says_where_the_help_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["runs", "--nope"]) == 2
    assert capsys.readouterr().err == "There is no option --nope. See `trackbed runs --help`.\n"
    assert main.main(["stop"]) == 2
    assert capsys.readouterr().err == "RUN is missing. See `trackbed stop --help`.\n"
    assert main.main(["runs", "--limit", "x", "--lang", "zh"]) == 2
    assert capsys.readouterr().err.startswith("--limit \u4e0d\u80fd\u53d6\u8fd9\u4e2a\u503c")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", sorted(main.COMMANDS))
def test_the_help_of_each_command_fits_the_terminal_and_is_in_one_language(
    name: str, lang: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main.main([name, "--help", "--lang", lang]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Usage: trackbed " if lang == "en" else "\u7528\u6cd5\uff1atrackbed ")
    assert max(map(output.wide, text.splitlines())) <= 80
    assert "<str>" not in text and (lang == "en" or "Options" not in text)


def test_a_group_alone_shows_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["data"]) == 2
    assert "  add   make the next version" in capsys.readouterr().out
    assert main.main(["data", "add", "--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: trackbed data add NAME PATH [OPTIONS]\n")


def test_a_fault_of_ours_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("TRACKBED_DEBUG", raising=False)

    def fail(*_: object) -> int:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(main, "invoke", fail)
    assert main.main(["status"]) == 70
    told = capsys.readouterr().err
    assert "oops" in told and "Traceback" not in told


def test_an_argument_that_is_no_text_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> int:
        return len("demo/\udcff".encode())

    monkeypatch.setattr(main, "invoke", fail)
    assert main.main(["show", "demo/\udcff"]) == 2
    assert "'\\udcff' is no text" in capsys.readouterr().err


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "invoke", fail)
    assert main.main(["status"]) == 130


def test_an_error_for_a_program_is_json_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["sumbit", "--json"]) == 2
    told = json.loads(capsys.readouterr().err)["error"]
    assert told["code"] == "cli_unknown_command_near" and told["params"]["near"] == "submit"


def test_chinese_comes_by_option_variable_and_locale(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["--lang", "zh"]) == 0 and "用法" in capsys.readouterr().out
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert main.main([]) == 0 and "用法" in capsys.readouterr().out
    monkeypatch.setenv("TRACKBED_LANG", "en")
    assert main.main([]) == 0 and "Usage" in capsys.readouterr().out


def test_a_language_that_is_not_there_is_refused() -> None:
    assert main.main(["--lang", "tlh"]) == 2


def test_common_options_are_taken_from_anywhere_but_not_from_behind_two_dashes() -> None:
    assert context.take(["runs", "--json", "--server=http://x", "a", "--", "--json"]) == ["runs", "a", "--", "--json"]
    assert (context.current().json, context.current().server) == (True, "http://x")
    context.take([])


def test_only_up_and_quickstart_may_load_the_server() -> None:
    for path in CLI.glob("*.py"):
        names = {
            name
            for node in ast.walk(ast.parse(path.read_text()))
            for name in (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [one.name for one in node.names]
                if isinstance(node, ast.Import)
                else []
            )
        }
        if path.stem not in ("up", "quickstart"):
            assert not [name for name in names if name.startswith("trackbed.server")], path.name


def test_every_text_is_there_in_both_languages() -> None:
    for name in main.COMMANDS:
        for lang in ("en", "zh"):
            about = catalogue(lang)[f"cli.about.{name}"]
            assert not about.endswith((".", "。")), f"{name}: a line of a list, not a sentence"
            assert about[0] == about[0].lower(), f"{name}: lines of the list begin small"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_text_that_a_command_says_is_in_the_catalogue(lang: str) -> None:
    said: set[str] = set()
    for path in CLI.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "say" and node.args:
                first = node.args[0]
                said |= {
                    str(one.value)
                    for one in ast.walk(first)
                    if isinstance(one, ast.Constant)
                    and str(one.value).count(".")
                    and not isinstance(first, ast.JoinedStr)
                }
    assert sorted(said - set(catalogue(lang))) == []


def test_every_word_over_a_column_is_in_the_catalogue() -> None:
    """`say(f"cli.word.{name}") for name in (…)`: the names stand in the tuple."""
    for path in CLI.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.ListComp)
                and "cli.word." in ast.unparse(node.elt)
                and isinstance(node.generators[0].iter, ast.Tuple)
            ):
                for one in ast.literal_eval(node.generators[0].iter):
                    assert f"cli.word.{one}" in catalogue("en"), (path.name, one)


_NAMED = re.compile(r"\btrackbed ((?:--?[a-z]+ )*)([a-z]+)((?: [A-Za-z_@.{}…-]+)*)")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_command_that_a_sentence_sends_people_to_is_there(lang: str) -> None:
    lost: list[str] = []
    for code, text in catalogue(lang).items():
        for _, name, rest in _NAMED.findall(text):
            real = main.ALIASES.get(name, name)
            if real not in main.COMMANDS:
                lost.append(f"{code}: {name}")
                continue
            command = typer.main.get_command(main.command_app(real))
            inner = getattr(command, "commands", {})
            words = rest.split()
            if inner and words and words[0] in inner:
                command = inner[words[0]]
            elif inner and words and words[0].isalpha() and words[0].islower():
                lost.append(f"{code}: {name} {words[0]}")
            known = {option for param in command.params for option in param.opts} | {
                "--help",
                "--lang",
                "--json",
                "--server",
            }
            lost += [
                f"{code}: {name} {word}"
                for word in words
                if word.startswith("-") and len(word) > 1 and word.rstrip(".") not in known
            ]
    assert lost == []


def test_an_option_that_is_no_time_or_size_is_wrong_input_by_its_name() -> None:
    assert context.seconds("1h30m", "--grace") == 5400
    with pytest.raises(BadInput) as wrong:
        context.seconds("banana", "--gc-every")
    assert wrong.value.params == {"value": "banana", "option": "--gc-every"}
    with pytest.raises(BadInput):
        context.size_bytes("banana")
