"""Tables of this room. A version is written once and never changed."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint, column, table

from trackbed.db import metadata

dataset = Table(
    "dataset",
    metadata,
    Column("id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("latest", Integer, nullable=False),  # its row is the lock under which the next number is given
    Column("created_us", Integer, nullable=False),
    UniqueConstraint("space_id", "name"),
)

version = Table(
    "dataset_version",
    metadata,
    Column("dataset_id", Text, ForeignKey("dataset.id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("kind", Text, nullable=False),  # folder | file
    Column("files", Integer, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("message", Text, nullable=False),
    Column("created_us", Integer, nullable=False),
    Column("created_by", Text, nullable=False),
    Index("dataset_version_by_digest", "digest"),
)

space = table("space", column("id"), column("name"))  # kept by `access`; here only what a name stands for
