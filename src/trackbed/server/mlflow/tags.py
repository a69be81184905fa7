"""Tags with values: read, set, taken away. Whoever calls has looked up their owner in scope."""

from collections.abc import Mapping, Sequence

from sqlalchemy import delete, select

from trackbed.base.errors import NotFound
from trackbed.db import ReadTx, Tx, upsert
from trackbed.server.mlflow.tables import tag
from trackbed.wire.mlflow import Asked, read_tag

EXPERIMENT, RUN, MODEL, VERSION, LOGGED = "experiment", "run", "model", "version", "logged"
LOGGED_PARAM = "logged_param"  # params of a logged model: texts that never change
_AT_ONCE = 500


def given(entries: Sequence[Asked]) -> dict[str, str]:
    """Return checked tags of a request; of a key that stands twice the last value.

    Raises:
        BadInput: `mlflow_tag_long`, `mlflow_field_missing`.
    """
    return dict(read_tag(entry) for entry in entries)


def put(tx: Tx, kind: str, owner: str, entries: Mapping[str, str]) -> None:
    rows = [{"kind": kind, "owner": owner, "key": key, "value": value} for key, value in entries.items()]
    if rows:
        tx.execute(upsert(tag, key=["kind", "owner", "key"], update=["value"]), rows)


def take(tx: Tx, kind: str, owner: str, key: str, *, must: bool = True) -> None:
    """Take a tag away.

    Raises:
        NotFound: `mlflow_tag_unknown`, where it `must` be there.
    """
    this = (tag.c.kind == kind, tag.c.owner == owner, tag.c.key == key)
    if not tx.execute(delete(tag).where(*this)).rowcount and must:
        raise NotFound("mlflow_tag_unknown", key=key[:200])


def of(tx: ReadTx, kind: str, owner: str) -> dict[str, str]:
    return of_many(tx, kind, [owner])[owner]


def of_many(tx: ReadTx, kind: str, owners: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return owner → key → value, by key."""
    found: dict[str, dict[str, str]] = {owner: {} for owner in owners}
    for at in range(0, len(owners), _AT_ONCE):
        part = tag.c.owner.in_(owners[at : at + _AT_ONCE])
        for row in tx.rows(select(tag).where(tag.c.kind == kind, part).order_by(tag.c.key)):
            found[row.owner][row.key] = row.value
    return found
