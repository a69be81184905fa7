"""A team's template from a terminal: added, refused when stale, kept to, and shown with the origin of each value."""

from pathlib import Path

import pytest
from e2e_harness import Installation, project_from

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

TEXT = """\
name: count
description: count with a script
spec: {run: './job.sh {{params.n}}', params: {n: 3}, resources: {cards: 0}}
required: [description]
locked: [run]
schema: {properties: {params: {properties: {n: {type: integer, maximum: 100}}}}}
"""


def test_a_template_from_the_terminal(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("shell", tmp_path)
    file = folder / "count.yaml"
    file.write_text(TEXT)
    assert inst.json("template", "add", str(file))["version"] == 1
    file.write_text(TEXT.replace("n: 3", "n: 4"))
    assert inst.json("template", "add", str(file), "--expected", "1")["version"] == 2
    file.write_text(TEXT.replace("n: 3", "n: 5"))
    stale = inst.cli("template", "add", str(file), "--expected", "1", check=False)
    assert stale.returncode == 4 and "count@1 count@2" in stale.stderr
    assert "spec.params.n" in inst.cli("template", "diff", "count@1", "count@2").stdout
    assert (
        "count@2" in inst.cli("template", "list").stdout and "required" in inst.cli("template", "show", "count").stdout
    )

    spec = folder / "mine.yaml"
    spec.write_text("template: count@1\nparams:\n  n: 500\nrun: rm -rf .\n")
    refused = inst.cli("submit", "mine.yaml", cwd=folder, check=False)
    assert refused.returncode == 2
    for said in ("params.n (line 3)", "run (line 4)", "description (line 1)", "fixed by the template"):
        assert said in refused.stderr, refused.stderr

    spec.write_text("template: count@1\ndescription: why\n")
    dry = inst.cli("submit", "mine.yaml", "--dry-run", "--set", "seed=3", cwd=folder).stdout
    lines = {line.split()[0]: line for line in dry.splitlines() if line.strip()}
    assert lines["params.n"].rstrip().endswith("template") and lines["seed"].rstrip().endswith("--set")
    assert lines["description"].rstrip().endswith("file") and lines["determinism"].rstrip().endswith("default")
    run = inst.submit(folder, file="mine.yaml")
    detail = inst.wait(run)
    assert (detail["spec"]["template"], detail["spec"]["params"]) == ("count@1", {"n": 3})
    assert "counting 3/3" in inst.cli("logs", run).stdout
