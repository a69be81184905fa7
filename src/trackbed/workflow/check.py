"""Rules on a whole spec, wherever it came from: one kind, known params, stages that can be run in sequence."""

import difflib
import math
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from trackbed.wire.runs import Reason
from trackbed.wire.spec import Spec, Stage
from trackbed.workflow import matrix, recipes
from trackbed.workflow.command import command_faults
from trackbed.workflow.finding import Finding
from trackbed.workflow.graph import data_for, params_for
from trackbed.workflow.read import Place
from trackbed.workflow.values import FORMATS

MAX_WORD_BYTES = 128 * 1024  # Linux: MAX_ARG_STRLEN


def find(spec: Spec) -> Iterator[Finding]:
    """Yield what is wrong with the spec as a whole, in any of its runs."""
    if not spec.matrix:
        yield from _find(spec)
        return
    faults = list(_matrix(spec))
    yield from faults
    if any(len(fault.path) == 2 for fault in faults):  # values that no run can have
        return
    seen: list[Finding] = []
    for values in matrix.single_values(spec)[: matrix.MOST]:
        for found in _find(matrix.with_values(spec, values)):
            place = found.path
            if place[:1] == ("params",) and len(place) > 1 and place[1] in spec.matrix:
                found = found._replace(path=("matrix", *place[1:]))
            if found not in seen:
                seen.append(found)
                yield found


def _matrix(spec: Spec) -> Iterator[Finding]:
    for name, values in spec.matrix.items():
        at: Place = ("matrix", name)
        if not values:
            yield Finding("spec_empty", at)
        whole = all(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 for value in values)
        if name == matrix.SEED and not whole:
            yield Finding("spec_matrix_seed", at, {"values": ", ".join(map(str, values))})
    if (runs := matrix.count(spec)) > matrix.MOST:
        yield Finding("spec_matrix_too_many", ("matrix",), {"count": runs, "most": matrix.MOST})


def _find(spec: Spec) -> Iterator[Finding]:
    yield from _one_kind(spec)
    yield from _names(spec)
    yield from texts(msgspec.to_builtins(spec), ())
    yield from _sizes(spec)
    yield from _params_finite(spec.params, ("params",))
    yield from _program(spec.run, spec.recipe, spec.params, list(spec.data), (), (("params",),))
    yield from _inputs_collide(list(spec.data), ("data",))
    if spec.checkpoint.keep is not None and spec.checkpoint.keep.best and not spec.checkpoint.keep.by:
        yield Finding("spec_keep_by", ("checkpoint", "keep", "best"), {"best": spec.checkpoint.keep.best})
    if spec.from_ is not None and (spec.recipe or any(stage.recipe for stage in spec.stages)):
        yield Finding("not_yet", ("from",), {"what": "from: with a recipe"}, relies=(("recipe",),))
    if spec.stages:
        yield from _stages(spec)


def notice(spec: Spec) -> list[Reason]:
    """Return what is allowed but probably not meant."""
    places = [("params", spec.params)] if not spec.recipe else []  # a recipe knows the kinds of its own
    places += [(f"stages[{at}].params", stage.params) for at, stage in enumerate(spec.stages) if not stage.recipe]
    return [
        Reason(code="param_text_number", params={"field": f"{where}.{name}", "value": value})
        for where, params in places
        for name, value in params.items()
        if isinstance(value, str) and _looks_like_number(value)
    ]


def _one_kind(spec: Spec) -> Iterator[Finding]:
    kinds = [name for name, value in (("run", spec.run), ("recipe", spec.recipe), ("stages", spec.stages)) if value]
    if not kinds:
        yield Finding("spec_kind_none", (), relies=(("run",), ("recipe",), ("stages",)))
    for name in kinds[1:]:
        yield Finding("spec_kind_many", (name,), {"given": " + ".join(kinds)})


def _names(spec: Spec) -> Iterator[Finding]:
    """The same rules as the schema's, for specs that never met it."""
    for field, value in (("project", spec.project), ("space", spec.space)):
        if not FORMATS["name"](value):
            yield Finding("spec_bad_name", (field,), {"value": value})
    if spec.name and not FORMATS["name"](spec.name):
        yield Finding("spec_bad_name", ("name",), {"value": spec.name})
    for name in spec.env:
        if not FORMATS["env-name"](name):
            yield Finding("spec_bad_env_name", ("env", name), {"value": name})
    for name, pin in spec.data.items():
        if not FORMATS["input-name"](name):
            yield Finding("spec_bad_input_name", ("data", name), {"value": name})
        if not FORMATS["dataset-ref"](pin.ref):
            yield Finding("spec_bad_dataset_ref", ("data", name), {"value": pin.ref})


def texts(value: Any, path: Place = ()) -> Iterator[Finding]:
    """What neither a process nor a database can be given: NUL, and halves of characters."""
    if isinstance(value, str):
        if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value):
            yield Finding("spec_bad_text", path, {"value": value[:80].encode("unicode_escape").decode()})
    elif isinstance(value, dict):
        for name, inner in cast(dict[str, Any], value).items():
            yield from texts(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(cast(list[Any], value)):
            yield from texts(inner, (*path, index))


def _sizes(spec: Spec) -> Iterator[Finding]:
    """What the kernel gives no process: a word of a command line or an environment variable above its limit."""
    texts: list[tuple[Place, str]] = [(("env", name), f"{name}={value}") for name, value in spec.env.items()]
    texts += [(("run",), spec.run), *((("stages", at, "run"), stage.run) for at, stage in enumerate(spec.stages))]
    for path, text in texts:
        size = len(text.encode("utf-8", "surrogatepass"))
        if size >= MAX_WORD_BYTES:
            yield Finding("spec_word_too_long", path, {"size": size, "limit": MAX_WORD_BYTES})


def _params_finite(value: Any, path: Place) -> Iterator[Finding]:
    if isinstance(value, float) and not math.isfinite(value):
        yield Finding("spec_param_not_finite", path, {"value": str(value)})
    elif isinstance(value, dict):
        for name, inner in cast(dict[str, Any], value).items():
            yield from _params_finite(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(cast(list[Any], value)):
            yield from _params_finite(inner, (*path, index))


def _program(
    run: str, recipe: str, params: dict[str, Any], inputs: list[str], path: Place, relies: tuple[Place, ...]
) -> Iterator[Finding]:
    for fault in command_faults(run, params):
        yield Finding(fault.code, (*path, "run"), fault.params, fault.line, relies)
    if not recipe:
        return
    known = recipes.recipe(recipe)
    if known is None:
        names = ", ".join(recipes.names()) or "-"
        yield Finding("spec_recipe_unknown", (*path, "recipe"), {"name": recipe, "known": names})
        return
    for name in known.data:
        if name not in inputs:
            yield Finding(
                "spec_recipe_data",
                (*path, "recipe"),
                {"recipe": recipe, "name": name},
                relies=(("data",), (*path, "inputs")),
            )
    for name, value in params.items():
        yield from _recipe_param((*path, "params", name), name, value, known)


def _recipe_param(where: Place, name: str, value: Any, recipe: recipes.Recipe) -> Iterator[Finding]:
    about = {"name": name, "recipe": recipe.name, "value": str(value)}
    param = recipe.params.get(name)
    if param is None:
        near = difflib.get_close_matches(name, list(recipe.params), n=1, cutoff=0.6)
        if near:
            yield Finding("spec_recipe_param_near", where, {**about, "near": near[0]})
        else:
            yield Finding("spec_recipe_param_unknown", where, {**about, "known": ", ".join(sorted(recipe.params))})
    elif not _fits(value, param.kind):
        yield Finding("spec_recipe_param_type", where, {**about, "example": str(param.default)})
    elif param.kind == "choice" and value not in param.choices:
        yield Finding("spec_not_one_of", where, {**about, "allowed": ", ".join(param.choices)})
    elif isinstance(value, int | float) and math.isfinite(value):
        if param.least is not None and value < param.least:
            yield Finding("spec_too_small", where, {**about, "least": f"{param.least:g}"})
        if param.most is not None and value > param.most:
            yield Finding("spec_too_great", where, {**about, "most": f"{param.most:g}"})


def _fits(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, {"integer": int, "number": int | float}.get(kind, str))


def _inputs_collide(names: list[str], path: Place) -> Iterator[Finding]:
    """`a-b` and `a_b` would both be TRACKBED_DATA_A_B."""
    seen: dict[str, str] = {}
    for name in names:
        variable = name.upper().replace("-", "_")
        if variable in seen:
            yield Finding(
                "spec_inputs_collide",
                (*path, name),
                {"name": name, "other": seen[variable], "variable": f"TRACKBED_DATA_{variable}"},
            )
        seen.setdefault(variable, name)


def _stages(spec: Spec) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for index, stage in enumerate(spec.stages):
        at: Place = ("stages", index)
        if stage.name in first and stage.name:
            yield Finding("spec_stage_twice", (*at, "name"), {"name": stage.name, "first": first[stage.name] + 1})
        first.setdefault(stage.name, index)
        yield from _stage_kind(stage, at)
        yield from _uses(spec, stage, at)
        params, data = params_for(spec, stage), data_for(spec, stage)
        yield from _params_finite(stage.params, (*at, "params"))
        yield from _program(
            stage.run, stage.recipe, params, [*data, *stage.inputs], at, (("params",), (*at, "params"), (*at, "uses"))
        )
        yield from _inputs_collide([*data, *stage.inputs], (*at, "inputs"))
    yield from _stage_links(spec.stages)


def _uses(spec: Spec, stage: Stage, at: Place) -> Iterator[Finding]:
    """What a stage says it uses must be there."""
    if stage.uses is None:
        return
    for field, named, known in (
        ("data", stage.uses.data, list(spec.data)),
        ("params", stage.uses.params, [*{**spec.params, **stage.params}]),
    ):
        for name in named or ():
            if name not in known:
                params = {"name": name, "field": field, "known": ", ".join(sorted(known)) or "-"}
                yield Finding("spec_uses_unknown", (*at, "uses", field), params, relies=((field,),))


def _stage_kind(stage: Stage, at: Place) -> Iterator[Finding]:
    kinds = [name for name in ("run", "recipe", "suite") if getattr(stage, name)]
    relies: tuple[Place, ...] = ((*at, "run"), (*at, "recipe"), (*at, "suite"))
    if stage.suite:
        yield Finding("not_yet", (*at, "suite"), {"what": "suite"})
    if not kinds:
        yield Finding("spec_stage_kind_none", at, {"name": stage.name}, relies=relies)
    elif len(kinds) > 1:
        yield Finding(
            "spec_stage_kind_many", (*at, kinds[1]), {"name": stage.name, "given": " + ".join(kinds)}, relies=relies
        )


def _stage_links(stages: list[Stage]) -> Iterator[Finding]:
    """Needs must be known and without a circle; inputs come from what is needed."""
    by_name = {stage.name: stage for stage in stages}
    names: tuple[Place, ...] = tuple(("stages", index, "name") for index in range(len(stages)))
    for index, stage in enumerate(stages):
        at: Place = ("stages", index)
        for need in stage.needs:
            if need == stage.name:
                yield Finding("spec_stage_needs_itself", (*at, "needs"), {"name": stage.name})
            elif need not in by_name:
                known = ", ".join(name for name in by_name if name != stage.name) or "-"
                yield Finding("spec_stage_need_unknown", (*at, "needs"), {"need": need, "known": known}, relies=names)
        before = _before(stage.name, by_name)
        for name, ref in stage.inputs.items():
            source, _, product = ref.partition(".")
            if source not in by_name or product not in by_name[source].produces:
                made = ", ".join(f"{s.name}.{p}" for s in stages for p in s.produces) or "-"
                yield Finding(
                    "spec_stage_product_unknown", (*at, "inputs", name), {"ref": ref, "made": made}, relies=names
                )
            elif source not in before:
                yield Finding("spec_stage_input_not_needed", (*at, "inputs", name), {"ref": ref, "source": source})
    if circle := _circle(stages):
        at = ("stages", next(index for index, stage in enumerate(stages) if stage.name == circle[0]), "needs")
        yield Finding("spec_stage_circle", at, {"circle": " → ".join([*circle, circle[0]])})


def _before(name: str, by_name: dict[str, Stage]) -> set[str]:
    seen: set[str] = set()
    todo = list(by_name[name].needs)
    while todo:
        need = todo.pop()
        if need in by_name and need not in seen:
            seen.add(need)
            todo += by_name[need].needs
    return seen


def _circle(stages: list[Stage]) -> list[str]:
    """Return the names along one circle of two or more stages, or nothing."""
    by_name = {stage.name: stage for stage in stages}
    for stage in stages:
        trail: list[str] = [stage.name]
        if _walk_back(stage.name, stage.name, by_name, trail, set()) and len(trail) > 1:
            return trail
    return []


def _walk_back(start: str, at: str, by_name: dict[str, Stage], trail: list[str], seen: set[str]) -> bool:
    for need in by_name[at].needs:
        if need == start and need != at:
            return True
        if need in by_name and need not in seen and need != at:
            seen.add(need)
            trail.append(need)
            if _walk_back(start, need, by_name, trail, seen):
                return True
            trail.pop()
    return False


def _looks_like_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
