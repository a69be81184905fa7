"""Write `docs/reference/spec.schema.json` and the tables of `docs/reference/spec.md` from the table of fields.

python -m trackbed.workflow.page [folder of the repository]
"""

import json
import sys
from pathlib import Path

from trackbed.workflow import fields

_HEAD = """\
# The run spec: `trackbed.yaml`

YAML 1.2 (`3e-4` is a number, `yes` is text). The JSON Schema for your editor: [`spec.schema.json`](spec.schema.json); put
`# yaml-language-server: $schema=…/spec.schema.json` into the first line of a file to use it. This page is made from the same table as
the checks (`python -m trackbed.workflow.page`).

A file may start from a [template](templates.md) (`template: pretrain@2`): its values lie below those of the file, its rules hold.

Exactly one of `run`, `recipe`, `stages`. A file is read first, then each `--set a.b=value` in order (the value is YAML; the later word
holds; `--set resources.cards=2` takes `cards_per_node` and `nodes` of the file away). Every fault is told at once, each with its line and
the way out, and nothing is submitted. A field marked *not yet* is refused with the code `not_yet`, never ignored.

```yaml
project: demo
name: my-train
data: {corpus: stdlib@latest}
params: {lr: 3e-4}
resources: {cards: 2}
run: python train.py --lr {{params.lr}}
```

`{{params.NAME}}` is replaced by the value, quoted for sh; text as it is, everything else as JSON (`true`, `null`, `[1, 2]`). `NAME` may be
a path into nested params. There are no expressions. Inside quotes, back-ticks or a here-document no quoting fits every value, so a
param there is a fault: take the quotes away, or read the JSON file `TRACKBED_PARAMS`.

Sizes: `40 GiB`, `512 MiB`, bytes. Times: `90s`, `30m`, `12h`, `1h30m`, seconds. Names: letters and digits of any script, `.`, `_`, `-`.
"""


def page() -> str:
    """Return the text of `docs/reference/spec.md`."""
    parts = [_HEAD, "## Fields\n", _table(fields.TOP)]
    for field in fields.TOP:
        if field.fields:
            parts += [f"## `{field.name}`\n", _table(field.fields)]
            parts += [
                text
                for inner in field.fields
                if inner.fields
                for text in (f"### `{field.name}.{inner.name}`\n", _table(inner.fields))
            ]
    parts += ["## One of `stages`\n", _table(fields.STAGE), "### `uses`\n", _table(fields.USES), _TAIL]
    return "\n".join(parts)


_TAIL = """\
Stages whose `needs` are done run at the same time, as the pool allows; an input `stage.product`
must come from a stage that is needed, directly or through others. A stage that is done is not run again when a later one is retried, and
one that was run before with all the same is taken from there: [stages](../explanation/stages.md).

Environment variables that you may not set, because the supervisor does: `RANK`, `LOCAL_RANK`, `WORLD_SIZE`, `LOCAL_WORLD_SIZE`,
`NODE_RANK`, `NNODES`, `MASTER_ADDR`, `MASTER_PORT`, and everything that starts with `TRACKBED_`, `PET_` or `MLFLOW_`.
"""


def _table(rows: tuple[fields.Field, ...]) -> str:
    lines = ["| field | what | example | default |", "| --- | --- | --- | --- |"]
    for field in rows:
        about = (
            field.about
            + (" See below." if field.fields or field.name == "stages" else "")
            + ("" if field.built else " *Not yet.*")
        )
        allowed = field.schema.get("enum")
        if allowed:
            about += " One of " + ", ".join(f"`{one}`" for one in allowed) + "."
        example = f"`{field.example}`".replace("|", "\\|") if field.example else ""
        lines.append(f"| `{field.name}` | {about} | {example} | {field.default} |")
    return "\n".join([*lines, ""])


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "docs" / "reference"
    (root / "spec.schema.json").write_text(
        json.dumps(fields.schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (root / "spec.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
