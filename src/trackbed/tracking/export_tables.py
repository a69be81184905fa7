"""Which installation this is, and which runs came from another one."""

from sqlalchemy import Column, Index, Integer, Table, Text, select

from trackbed.base.entropy import new_id
from trackbed.db import ReadTx, Tx, metadata
from trackbed.wire.bundle import OriginView

installation = Table(
    "installation",
    metadata,
    Column("one", Integer, primary_key=True, autoincrement=False),  # always 1
    Column("id", Text, nullable=False),
)

# A record that was imported is foreign for ever. `whole` once everything of it is in.
origin = Table(
    "run_origin",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("installation", Text, nullable=False),
    Column("original_id", Text, nullable=False),
    Column("original_ref", Text, nullable=False),
    Column("owner", Text, nullable=False, default=""),
    Column("record", Text, nullable=False),  # BLAKE3 of run.json: the same record twice is one run
    Column("bundle", Text, nullable=False),
    Column("imported_us", Integer, nullable=False),
    Column("imported_by", Text, nullable=False),
    Column("whole", Integer, nullable=False, default=0),
    Index("run_origin_by_original", "space_id", "installation", "original_id"),
)


def installation_id(tx: Tx) -> str:
    """Return the id of this installation, made at its first use."""
    known = tx.scalar(select(installation.c.id))
    if known is None:
        known = new_id("ins")
        tx.execute(installation.insert().values(one=1, id=known))
    return known


def origin_view(tx: ReadTx, run_id: str) -> OriginView | None:
    """Return where a foreign run came from, None for one of ours."""
    row = tx.one(select(origin).where(origin.c.run_id == run_id))
    if row is None:
        return None
    return OriginView(
        installation=row.installation, id=row.original_id, ref=row.original_ref, owner=row.owner, bundle=row.bundle,
        imported_us=row.imported_us, imported_by=row.imported_by,
    )  # fmt: skip


def origin_of(tx: ReadTx, run_id: str) -> dict[str, str]:
    """Return the same as a bundle carries it on; empty for one of ours."""
    view = origin_view(tx, run_id)
    return {} if view is None else {name: getattr(view, name) for name in ("installation", "id", "ref", "owner")}
