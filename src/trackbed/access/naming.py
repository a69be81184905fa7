"""The rule that names and tags of a project's runs must fit. One row a project; who changes it names the version they saw."""

from dataclasses import dataclass, field

import msgspec
from sqlalchemy import select

from trackbed.access import tables
from trackbed.access.projects import find_project
from trackbed.access.spaces import space_named
from trackbed.base.errors import BadInput, Conflict, Fault
from trackbed.db import ReadTx, Tx, scope_clause, upsert
from trackbed.domain import naming
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Scope
from trackbed.wire.access import NamingView


@dataclass(frozen=True)
class Rule:
    """`name` "" : any name; `tags`: each needs one tag that fits it."""

    project: str = ""
    name: str = ""
    tags: list[str] = field(default_factory=list[str])

    def faults(self, name: str, tags: list[str], *, user: str) -> list[Fault]:
        """What a run's name and tags have against the rule, each with an example that fits."""
        found: list[Fault] = []
        if self.name:
            pattern = naming.read(self.name)
            if not pattern.fits(name, user=user):
                code = "naming_name_wrong" if name else "naming_name_missing"
                about = {"value": name, "project": self.project, "pattern": self.name, "example": pattern.example(user=user)}  # fmt: skip
                found.append(Fault(code, "name", None, about))
        for text in self.tags:
            pattern = naming.read(text)
            if not any(pattern.fits(tag, user=user) for tag in tags):
                about = {"project": self.project, "pattern": text, "example": pattern.example(user=user), "tags": ", ".join(tags) or "-"}  # fmt: skip
                found.append(Fault("naming_tag_missing", "tags", None, about))
        return found


def rule_of(tx: ReadTx, scope: Scope, space: str, project: str) -> Rule:
    """Return the rule of a project that the scope may read; of one that is not there yet, none."""
    room = space_named(tx, scope, space, permission=Permission.READ)
    names, rules = tables.project_name, tables.naming
    row = tx.one(
        select(rules)
        .join(names, names.c.project_id == rules.c.project_id)
        .where(names.c.space_id == room.id, names.c.name == project, scope_clause(rules, scope))
    )
    return Rule() if row is None else Rule(project, row.name, msgspec.json.decode(row.tags, type=list[str]))


def set_rule(
    tx: Tx, scope: Scope, project: str, *, space: str, name: str, tags: list[str], expected: int | None = None
) -> NamingView:
    """Set the rule; both empty takes it away. Runs that stand keep their names. Needs a maintainer.

    Raises:
        BadInput: `naming_wrong` with every pattern that cannot be read.
        Conflict: `naming_moved`: somebody else changed it since `expected`.
    """
    found = find_project(tx, scope, project, space=space, permission=Permission.MAINTAIN)
    faults = [
        *(_fault("name", name) if name else []),
        *(one for at, tag in enumerate(tags) for one in _fault(f"tags[{at}]", tag)),
    ]
    if faults:
        raise BadInput("naming_wrong", faults=faults, count=len(faults))
    rules = tables.naming
    row = tx.one(select(rules).where(rules.c.project_id == found.id).with_for_update())
    version = row.version if row else 0
    if expected is not None and expected != version:
        raise Conflict("naming_moved", project=found.name, expected=expected, version=version)
    values = {
        "project_id": found.id, "space_id": found.space_id, "name": name, "tags": msgspec.json.encode(tags).decode(),
        "version": version + 1, "changed_us": tx.now_us, "changed_by": tx.actor.name or tx.actor.id,
    }  # fmt: skip
    changed = [key for key in values if key not in ("project_id", "space_id")]
    tx.execute(upsert(rules, values, key=["project_id"], update=changed))
    tx.emit(Event("project.naming", found.id, space_id=found.space_id, data={"project": found.name, "name": name, "tags": tags}))  # fmt: skip
    return _view(name, tags, version + 1)


def views(tx: ReadTx, scope: Scope) -> dict[str, NamingView]:
    """Return the rules of the projects that the scope may read, by project id."""
    found: dict[str, NamingView] = {}
    for row in tx.rows(select(tables.naming).where(scope_clause(tables.naming, scope))):
        tags = msgspec.json.decode(row.tags, type=list[str])
        found[row.project_id] = _view(row.name, tags, row.version)
    return found


def _view(name: str, tags: list[str], version: int) -> NamingView:
    return NamingView(
        name=name, tags=tags, version=version, example=naming.read(name).example() if name else "",
        tag_examples=[naming.read(tag).example() for tag in tags],
    )  # fmt: skip


def _fault(where: str, text: str) -> list[Fault]:
    try:
        naming.read(text)
    except naming.PatternError as wrong:
        return [Fault(f"naming_pattern_{wrong.code}", where, None, {"pattern": text[:200], "part": wrong.part})]
    return []
