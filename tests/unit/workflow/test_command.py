"""`{{params.x}}` is replaced by a value that sh reads back as exactly that value."""

import json
import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trackbed.base.errors import BadInput
from trackbed.workflow.command import as_text, render_command


def said(command: str) -> list[str]:
    out = subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout
    return out.decode().split("\0")[:-1]


@pytest.mark.parametrize("value", ["a b", "it's", '"', "$(id)", "`id`", "\\", "*", "", "a\nb", "损失", "-n", 3, 3e-4, True, None, [1, "a b"], {"k": "v"}])  # fmt: skip
def test_every_value_reaches_the_program_as_it_is(value: object) -> None:
    command = render_command("printf '%s\\0' {{params.x}} {{ params.x }}end", {"x": value})
    assert said(command) == [as_text(value), as_text(value) + "end"]


@settings(max_examples=200)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_any_text_is_one_word(value: str) -> None:
    assert shlex.split(render_command("t {{params.x}}", {"x": value})) == ["t", value]


def test_a_nested_param_is_found_by_its_path_and_a_dotted_name_first() -> None:
    assert render_command("{{params.a.b}}", {"a": {"b": 1}}) == "1"
    assert render_command("{{params.a.b}}", {"a": {"b": 1}, "a.b": 2}) == "2"


def test_braces_of_other_programs_are_left_alone() -> None:
    command = "docker ps --format '{{.Names}}'; awk '{ print {{1}} }'; echo ${x} {}"
    assert render_command(command, {}) == command


@pytest.mark.parametrize(
    "command",
    ["echo '{{params.x}}'", 'echo "{{params.x}}"', 'echo "$(cat {{params.x}})"', "echo `cat {{params.x}}`", "echo \"it's\" \"{{params.x}}\"",
     "cat <<EOF\n{{params.x}}\nEOF", "cat <<-'EOF'\n\t{{params.x}}\n\tEOF\n"],
)  # fmt: skip
def test_a_param_inside_quotes_is_refused_because_no_quoting_fits(command: str) -> None:
    with pytest.raises(BadInput) as caught:
        render_command(command, {"x": "'; rm -rf ~; '"})
    assert [fault.code for fault in caught.value.faults] == ["spec_param_in_quotes"]


@pytest.mark.parametrize(
    "command",
    ["# don't\necho {{params.x}}", "echo it\\'s {{params.x}}", "cat <<EOF\nit's\nEOF\necho {{params.x}}", "cat <<< 'a' {{params.x}}",
     "echo 'a' {{params.x}} \"b\"", "echo a#'b' {{params.x}}"],
)  # fmt: skip
def test_quotes_elsewhere_do_not_disturb(command: str) -> None:
    assert render_command(command, {"x": 1}) == command.replace("{{params.x}}", "1")


@pytest.mark.parametrize("hole", ["{{params.x + 1}}", "{{params['x']}}", "{{params}}", "{{seed}}", "{{params.}}"])
def test_there_are_no_expressions(hole: str) -> None:
    with pytest.raises(BadInput) as caught:
        render_command(f"t {hole}", {"x": 1})
    assert [fault.code for fault in caught.value.faults] == ["spec_no_expressions"]


def test_params_are_written_as_json_when_they_are_no_text() -> None:
    assert json.loads(shlex.split(render_command("t {{params.x}}", {"x": {"a": [1, None, True]}}))[1]) == {
        "a": [1, None, True]
    }
