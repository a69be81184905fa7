"""Tables of this room. A version is written once and never changed; only aliases move."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint, column, table

from trackbed.db import metadata

model = Table(
    "model",
    metadata,
    Column("id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("latest", Integer, nullable=False),  # its row is the lock under which the next number is given
    Column("created_us", Integer, nullable=False),
    UniqueConstraint("space_id", "name"),
)

version = Table(
    "model_version",
    metadata,
    Column("model_id", Text, ForeignKey("model.id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("provenance", Text, nullable=False),  # JSON
    Column("created_us", Integer, nullable=False),
    Column("created_by", Text, nullable=False),
    Index("model_version_by_digest", "digest"),
    Index("model_version_by_run", "run_id"),
)

alias = Table(
    "model_alias",
    metadata,
    Column("model_id", Text, ForeignKey("model.id"), primary_key=True),
    Column("alias", Text, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("changed_us", Integer, nullable=False),
    Column("changed_by", Text, nullable=False),
)

space = table("space", column("id"), column("name"))  # kept by `access`; here only what a name stands for
