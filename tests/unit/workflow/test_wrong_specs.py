"""Every wrong spec is answered with the code, the field and the line of each fault, and a sentence with a way out."""

from pathlib import Path
from typing import NamedTuple

import pytest

from trackbed.base.errors import BadInput, NotFound
from trackbed.workflow import spec

RUN = "run: python t.py\n"
RECIPE = "recipe: pretrain\ndata: {corpus: stdlib@latest}\n"


class Wrong(NamedTuple):
    text: str
    code: str
    field: str
    line: int | None
    says: str  # a piece of the sentence: the way out


WRONG = {
    "no_yaml": Wrong("project: [demo\nrun: x\n", "spec_not_yaml", "", 2, "Check indentation"),
    "tab_indent": Wrong("resources:\n\tcards: 2\n", "spec_not_yaml", "", 2, "Check indentation"),
    "too_deep": Wrong(RUN + "params: " + "{a: " * 150 + "1" + "}" * 150 + "\n", "spec_too_deep", "params" + ".a" * 100, 2, "flatter"),
    "endlessly_deep": Wrong("params: " + "{a: " * 5000 + "1" + "}" * 5000 + "\n", "spec_too_deep", "", None, "flatter"),
    "nul_in_the_command": Wrong('run: "echo a\\0b"\n', "spec_bad_text", "run", 1, "Take it out"),
    "nul_in_a_variable": Wrong(RUN + 'env: {A: "a\\0b"}\n', "spec_bad_text", "env.A", 2, "Take it out"),
    "half_a_character": Wrong(RUN + 'params: {x: ["\\ud800"]}\n', "spec_bad_text", "params.x[0]", 2, "Take it out"),
    "command_beyond_the_kernel": Wrong(f"run: 'true # {'x' * 131072}'\n", "spec_word_too_long", "run", 1, "file of the code"),
    "variable_beyond_the_kernel": Wrong(RUN + f"env: {{A: {'x' * 131070}}}\n", "spec_word_too_long", "env.A", 2, "file"),
    "a_list": Wrong("- run: x\n", "spec_not_mapping", "", 1, "project: demo"),
    "empty": Wrong("", "spec_kind_none", "", None, "exactly one of run, recipe, stages"),
    "unknown_field": Wrong(RUN + "zebra: 1\n", "spec_unknown_field", "zebra", 2, "Known here: space"),
    "misspelt_field": Wrong(RUN + "descriptoin: x\n", "spec_unknown_field_near", "descriptoin", 2, "did you mean description"),
    "misspelt_inner": Wrong(RUN + "resources:\n  card: 2\n", "spec_unknown_field_near", "resources.card", 3, "did you mean cards"),
    "key_twice": Wrong("run: a\nproject: demo\nrun: b\n", "spec_key_twice", "run", 3, "line 1"),
    "tag_of_python": Wrong(RUN + "name: !!python/name:os.system x\n", "spec_tag", "name", 2, "Take it away"),
    "anchor_in_itself": Wrong(RUN + "params: &a\n  b: *a\n", "spec_anchor_endless", "params.b", 2, "Write the values out"),
    "name_is_number": Wrong(RUN + "name: 17\n", "spec_want_string", "name", 2, "in quotes"),
    "seed_is_text": Wrong(RUN + "seed: lucky\n", "spec_want_integer", "seed", 2, "digits only"),
    "seed_in_quotes": Wrong(RUN + 'seed: "17"\n', "spec_number_in_quotes", "seed", 2, "quotes away"),
    "seed_is_fraction": Wrong(RUN + "seed: 1.5\n", "spec_want_integer", "seed", 2, "digits only"),
    "seed_below_zero": Wrong(RUN + "seed: -1\n", "spec_too_small", "seed", 2, "at least 0"),
    "seed_too_great": Wrong(RUN + "seed: 9223372036854775808\n", "spec_too_great", "seed", 2, "at most"),
    "tags_is_text": Wrong(RUN + "tags: baseline\n", "spec_want_array", "tags", 2, "[one, two]"),
    "tag_twice": Wrong(RUN + "tags: [a, b, a]\n", "spec_twice", "tags", 2, "Keep one"),
    "params_is_list": Wrong(RUN + "params: [lr]\n", "spec_want_object", "params", 2, "one `name: value` a line"),
    "env_value_is_number": Wrong(RUN + "env: {OMP_NUM_THREADS: 4}\n", "spec_want_string", "env.OMP_NUM_THREADS", 2, "in quotes"),
    "env_name_is_ours": Wrong(RUN + 'env:\n  RANK: "0"\n', "spec_bad_env_name", "env.RANK", 3, "another name"),
    "bad_project": Wrong(RUN + "project: my project\n", "spec_bad_name", "project", 2, "Use letters"),
    "bad_name": Wrong(RUN + "name: a/b#c\n", "spec_bad_name", "name", 2, "Use letters"),
    "bad_input_name": Wrong(RUN + "data: {1st: a@1}\n", "spec_bad_input_name", "data.1st", 2, "starting with a letter"),
    "bad_dataset_ref": Wrong(RUN + "data:\n  corpus: stdlib@@3\n", "spec_bad_dataset_ref", "data.corpus", 3, "name@latest"),
    "inputs_collide": Wrong(RUN + "data:\n  a-b: x@1\n  a_b: x@1\n", "spec_inputs_collide", "data.a_b", 4, "Rename one"),
    "bad_priority": Wrong(RUN + "priority: hihg\n", "spec_not_one_of_near", "priority", 2, "did you mean high"),
    "bad_launcher": Wrong(RUN + "launcher: mpirun\n", "spec_not_one_of", "launcher", 2, "rank_per_card"),
    "bad_time_limit": Wrong(RUN + "resources: {time_limit: soon}\n", "spec_bad_duration", "resources.time_limit", 2, "12h"),
    "no_time": Wrong(RUN + "on_preempt: {grace: 0}\n", "spec_bad_duration", "on_preempt.grace", 2, "90s"),
    "bad_size": Wrong(RUN + "resources: {card_memory: lots}\n", "spec_bad_size", "resources.card_memory", 2, "40 GiB"),
    "cards_below_zero": Wrong(RUN + "resources: {cards: -1}\n", "spec_too_small", "resources.cards", 2, "at least 0"),
    "cards_twice": Wrong(RUN + "resources: {cards: 2, nodes: 2}\n", "spec_cards_twice", "resources.cards", 2, "Keep cards"),
    "nodes_without_cards": Wrong(RUN + "resources: {cards_per_node: 0, nodes: 2}\n", "spec_nodes_without_cards", "resources.nodes", 2, "nodes: 1"),
    "bad_every": Wrong(RUN + "checkpoint: {every: often}\n", "spec_bad_every", "checkpoint.every", 2, "200 steps"),
    "bare_every": Wrong(RUN + "checkpoint:\n  every: '200'\n", "spec_bad_every", "checkpoint.every", 3, "200 steps"),
    "bad_upload": Wrong(RUN + "checkpoint: {upload: 4}\n", "spec_want_string", "checkpoint.upload", 2, "in quotes"),
    "keep_none": Wrong(RUN + "checkpoint: {keep: {last: 0}}\n", "spec_too_small", "checkpoint.keep.last", 2, "at least 1"),
    "keep_best_by_nothing": Wrong(RUN + "checkpoint: {keep: {best: 2}}\n", "spec_keep_by", "checkpoint.keep.best", 2, "by: eval/loss"),
    "keep_goal": Wrong(RUN + "checkpoint: {keep: {by: x, goal: low}}\n", "spec_not_one_of", "checkpoint.keep.goal", 2, "min, max"),
    "bad_nth": Wrong(RUN + "checkpoint: {upload: sometimes}\n", "spec_bad_nth", "checkpoint.upload", 2, "every 4th"),
    "bad_signal": Wrong(RUN + "on_preempt: {signal: KILL}\n", "spec_not_one_of", "on_preempt.signal", 2, "TERM"),
    "bad_cause": Wrong(RUN + "retries: {user_eror: 1}\n", "spec_not_one_of_near", "retries.user_eror", 2, "user_error"),
    "run_and_recipe": Wrong(RUN + RECIPE, "spec_kind_many", "recipe", 2, "Keep exactly one"),
    "no_recipe_of_that_name": Wrong("recipe: alchemy\n", "spec_recipe_unknown", "recipe", 1, "Recipes:"),
    "recipe_without_data": Wrong("recipe: pretrain\n", "spec_recipe_data", "recipe", 1, "below data"),
    "recipe_param_unknown": Wrong(RECIPE + "params: {zebra: 1}\n", "spec_recipe_param_unknown", "params.zebra", 3, "It has:"),
    "recipe_param_misspelt": Wrong(RECIPE + "params: {layer: 1}\n", "spec_recipe_param_near", "params.layer", 3, "did you mean layers"),
    "recipe_param_in_quotes": Wrong(RECIPE + 'params: {lr: "3e-4"}\n', "spec_recipe_param_type", "params.lr", 3, "numbers without quotes"),
    "recipe_param_too_small": Wrong(RECIPE + "params: {steps: 0}\n", "spec_too_small", "params.steps", 3, "at least 1"),
    "recipe_param_no_choice": Wrong(RECIPE + "params: {precision: fp8}\n", "spec_not_one_of", "params.precision", 3, "fp32, bf16"),
    "recipe_from_a_model": Wrong(RECIPE + "from: {model: m@1}\n", "not_yet", "from", 3, "not built yet"),
    "no_param": Wrong("params: {lr: 1}\nrun: t --lr {{params.rl}}\n", "spec_param_undefined", "run", 2, "Add it below params"),
    "no_param_in_block": Wrong("run: |\n  a\n  b {{params.x}}\n", "spec_param_undefined", "run", 3, "Add it below params"),
    "an_expression": Wrong("params: {n: 1}\nrun: t {{params.n + 1}}\n", "spec_no_expressions", "run", 2, "in your program"),
    "param_in_quotes": Wrong("params: {n: 1}\nrun: t '{{params.n}}'\n", "spec_param_in_quotes", "run", 2, "take the quotes away"),
    "param_not_finite": Wrong(RUN + "params: {x: .nan}\n", "spec_param_not_finite", "params.x", 2, "finite number"),
    "from_two": Wrong(RUN + "from: {model: a@1, checkpoint: b@latest}\n", "spec_from_one", "from", 2, "Keep one"),
    "bad_checkpoint_ref": Wrong(RUN + "from: {checkpoint: demo#1}\n", "spec_bad_checkpoint_ref", "from.checkpoint", 2, "RUN@latest"),
    "register_outside": Wrong(RUN + "register: {model: m, path: ../x}\n", "spec_bad_inner_path", "register.path", 2, "relative path"),
    "stage_without_name": Wrong("stages:\n  - run: a\n", "spec_missing", "stages[0].name", 2, "Add it"),
    "stage_twice": Wrong("stages:\n  - {name: a, run: x}\n  - {name: a, run: y}\n", "spec_stage_twice", "stages[1].name", 3, "Rename one"),
    "stage_need_unknown": Wrong("stages:\n  - {name: a, run: x, needs: [b]}\n", "spec_stage_need_unknown", "stages[0].needs", 2, "Other stages"),
    "stage_needs_itself": Wrong("stages:\n  - {name: a, run: x, needs: [a]}\n", "spec_stage_needs_itself", "stages[0].needs", 2, "Take it out"),
    "stage_circle": Wrong("stages:\n  - {name: a, run: x, needs: [b]}\n  - {name: b, run: x, needs: [a]}\n", "spec_stage_circle", "stages[0].needs", 2, "a → b → a"),
    "stage_no_product": Wrong("stages:\n  - {name: a, run: x}\n  - {name: b, run: x, needs: [a], inputs: {d: a.out}}\n", "spec_stage_product_unknown", "stages[1].inputs.d", 3, "Products:"),
    "stage_not_needed": Wrong("stages:\n  - {name: a, run: x, produces: {out: o/}}\n  - {name: b, run: x, inputs: {d: a.out}}\n", "spec_stage_input_not_needed", "stages[1].inputs.d", 3, "needs: [a]"),
    "stage_of_nothing": Wrong("stages:\n  - {name: a}\n", "spec_stage_kind_none", "stages[0]", 2, "exactly one"),
    "uses_no_param": Wrong("params: {n: 1}\nstages:\n  - {name: a, run: x, uses: {params: [m]}}\n", "spec_uses_unknown", "stages[0].uses.params", 3, "There are: n"),
    "uses_no_data": Wrong("stages:\n  - {name: a, run: x, uses: {data: [corpus]}}\n", "spec_uses_unknown", "stages[0].uses.data", 2, "not among the data"),
    "uses_outside": Wrong("stages:\n  - {name: a, run: x, uses: {files: [../b]}}\n", "spec_bad_inner_path", "stages[0].uses.files[0]", 2, "relative path"),
    "param_not_used": Wrong("params: {n: 1}\nstages:\n  - {name: a, run: 'x {{params.n}}', uses: {params: []}}\n", "spec_param_undefined", "stages[0].run", 3, "Add it below params"),
    "matrix_no_list": Wrong(RUN + "matrix: {lr: 0.1}\n", "spec_want_array", "matrix.lr", 2, "list"),
    "matrix_empty": Wrong(RUN + "matrix: {lr: []}\n", "spec_empty", "matrix.lr", 2, "leave the field out"),
    "matrix_twice": Wrong(RUN + "matrix: {lr: [1, 1]}\n", "spec_twice", "matrix.lr", 2, "Keep one"),
    "matrix_seed": Wrong(RUN + "matrix: {seed: [1, -1]}\n", "spec_matrix_seed", "matrix.seed", 2, "whole number"),
    "matrix_too_many": Wrong(RUN + f"matrix: {{a: {list(range(20))}, b: {list(range(20))}}}\n", "spec_matrix_too_many", "matrix", 2, "400 runs"),
    "matrix_recipe_param": Wrong(RECIPE + "matrix: {steps: [1, 0]}\n", "spec_too_small", "matrix.steps", 3, "at least 1"),
    "cache_no_bool": Wrong(RUN + "cache: off\n", "spec_want_boolean", "cache", 2, "true or false"),
    "environment_word": Wrong(RUN + "environment: conda\n", "spec_bad_environment", "environment", 2, "ends with .lock"),
    "environment_outside": Wrong(RUN + "environment: ../requirements.lock\n", "spec_bad_environment", "environment", 2, "below the code"),
    "environment_image_tag": Wrong(RUN + "environment: pytorch/pytorch:latest\n", "spec_bad_environment", "environment", 2, "NAME@sha256"),
    "stages_empty": Wrong("stages: []\n", "spec_empty", "stages", 1, "leave the field out"),
}  # fmt: skip

NOT_YET = {
    "window": "window: {off_peak: true}\n", "secrets": "secrets: [TOKEN]\n",
    "needs": "needs: [demo#16]\n", "notify": "notify: [owner]\n", "price_limit": "price_limit: 200\n",
    "on_rank_loss": "on_rank_loss: restart\n",
    "resources.shm": "resources: {shm: 1 GiB}\n", "resources.ram_per_card": "resources: {ram_per_card: 1 GiB}\n",
    "from.state": "from: {checkpoint: demo#1@latest, state: all}\n",
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_spec_is_told_where_and_how_to_mend(name: str) -> None:
    wrong = WRONG[name]
    loaded = spec.read(wrong.text)
    found = [fault for fault in loaded.faults if fault.code == wrong.code]
    assert found, [fault.code for fault in loaded.faults]
    assert (found[0].field, found[0].line) == (wrong.field, wrong.line)
    assert wrong.says in found[0].text("en")
    assert "{" not in found[0].text("zh").replace("{{params", "")
    assert len(loaded.faults) == 1, loaded.faults  # no fault that only follows from another


@pytest.mark.parametrize("field", NOT_YET)
def test_a_field_whose_room_is_not_built_is_refused_and_never_ignored(field: str) -> None:
    (fault,) = spec.read(RUN + NOT_YET[field]).faults
    assert (fault.code, fault.field, fault.line) == ("not_yet", field, 2)


def test_all_faults_come_in_one_message_in_the_order_of_the_file() -> None:
    text = "name: a b\nseed: x\nresources: {cards: many}\nstages: 3\nwindow: {}\nzebra: 1\n"
    with pytest.raises(BadInput) as caught:
        spec.load(text, ["priority=soon"])
    assert caught.value.code == "spec_wrong" and caught.value.exit_status == 2
    assert [fault.line for fault in caught.value.faults] == [1, 2, 3, 4, 5, 6, None]
    assert str(caught.value).count("\n") == 7


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no\.yaml"):
        spec.load(tmp_path / "no.yaml")


def test_bytes_that_are_not_utf8_are_told_by_line(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_bytes(b"project: demo\nname: \xff\xfe\n")
    with pytest.raises(BadInput) as caught:
        spec.load(path)
    assert [(fault.code, fault.line) for fault in caught.value.faults] == [("spec_not_utf8", 2)]


def test_a_billion_laughs_is_refused_quickly() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "spec_anchor_endless" in {fault.code for fault in spec.read("\n".join(lines)).faults}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("code: []", ("spec_empty", "code")),
        ("code: [., ../]", ("spec_code_unnamed", "code[1]")),
        ("code: [a, {path: b, name: x}, {path: c, name: x}]", ("spec_code_twice", "code[2]")),
        ("code: [{name: x}]", ("spec_missing", "code[0].path")),
        ("code: {path: ., included: [x]}", ("spec_unknown_field_near", "code.included")),
        ("code: [{path: ., include: [../x]}]", ("spec_bad_inner_path", "code[0].include[0]")),
    ],
)
def test_code_of_several_folders_is_judged_part_by_part(code: str, expected: tuple[str, str]) -> None:
    assert expected in [(fault.code, fault.field) for fault in spec.read(f"run: x\n{code}\n").faults]


def test_code_of_several_folders_is_read_and_passes_the_rules_of_the_wire() -> None:
    loaded = spec.read("run: x\ncode: [., ../lib, {path: ../data, name: raw, include: ['*.csv']}]\n")
    assert loaded.faults == [] and not isinstance(loaded.spec.code, str)
    assert [(one.path, one.name, one.include) for one in loaded.spec.code] == [
        (".", "", []), ("../lib", "lib", []), ("../data", "raw", ["*.csv"]),
    ]  # fmt: skip
    assert spec.check(loaded.spec) == []
    assert isinstance(spec.read("run: x\ncode: src\n").spec.code, str)
