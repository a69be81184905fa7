"""A spec as the page edits it: text and values of one another, with the lines of what is wrong."""

from trackbed.server.routes.templates import both_forms
from trackbed.wire.templates import SpecText


def test_values_become_a_file_that_reads_back_as_the_same_values() -> None:
    values = {
        "project": "demo",
        "run": "python a.py",
        "params": {"lr": 3e-4, "name": "a: b", "损失": [1, "x"], "on": True},
    }
    made = both_forms(SpecText(values=values))
    assert made.faults == []
    assert both_forms(SpecText(text=made.text)).values == values


def test_a_fault_of_the_text_stands_on_its_line_and_one_of_the_values_at_its_field() -> None:
    text = "project: demo\nrun: python a.py\nresources: {cards: -1}\nfoo: 1\n"
    found = {(fault.field, fault.line) for fault in both_forms(SpecText(text=text)).faults}
    assert found == {("resources.cards", 3), ("foo", 4)}
    made = both_forms(SpecText(values={"run": "python a.py", "foo": 1}))
    assert [(fault.field, fault.line) for fault in made.faults] == [("foo", None)]


def test_what_is_no_yaml_is_told_and_leaves_the_text_alone() -> None:
    made = both_forms(SpecText(text="a: [1\nb"))
    assert (made.text, made.values, made.faults[0].code) == ("a: [1\nb", {}, "spec_not_yaml")
