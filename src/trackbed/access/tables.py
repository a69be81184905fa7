"""Tables of this room. Times are UTC microseconds, 0 = not (yet, ever); booleans are 0 or 1."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text

from trackbed.db import metadata

person = Table(
    "person",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("admin", Integer, nullable=False),
    Column("disabled", Integer, nullable=False, default=0),
    Column("created_us", Integer, nullable=False),
)

# Tokens of persons and browser sessions.
token = Table(
    "token",
    metadata,
    Column("id", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("person.id"), nullable=False),
    Column("kind", Text, nullable=False),  # person | session
    Column("digest", Text, nullable=False, unique=True),
    Column("label", Text, nullable=False, default=""),
    Column("created_us", Integer, nullable=False),
    Column("expires_us", Integer, nullable=False, default=0),
    Column("last_used_us", Integer, nullable=False, default=0),
    Column("revoked_us", Integer, nullable=False, default=0),
    Index("token_by_person", "person_id"),
)

login_link = Table(
    "login_link",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("person.id"), nullable=False),
    Column("expires_us", Integer, nullable=False),
    Column("used_us", Integer, nullable=False, default=0),
)

# One living token an attempt; a new one replaces it.
attempt_token = Table(
    "attempt_token",
    metadata,
    Column("attempt_id", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("space_id", Text, nullable=False),
    Column("digest", Text, nullable=False, unique=True),
    Column("created_us", Integer, nullable=False),
    Column("revoked_us", Integer, nullable=False, default=0),
)

space = Table(
    "space",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created_us", Integer, nullable=False),
)

membership = Table(
    "membership",
    metadata,
    Column("space_id", Text, ForeignKey("space.id"), primary_key=True),
    Column("person_id", Text, ForeignKey("person.id"), primary_key=True),
    Column("role", Text, nullable=False),  # viewer | member | maintainer
    Index("membership_by_person", "person_id"),
)

# Names that a project has or had: an old name keeps leading to it.
project_name = Table(
    "project_name",
    metadata,
    Column("space_id", Text, ForeignKey("space.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("project_id", Text, nullable=False),
    Index("project_name_by_project", "project_id"),
)

project = Table(
    "project",
    metadata,
    Column("id", Text, primary_key=True),
    Column("space_id", Text, ForeignKey("space.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("runs", Integer, nullable=False, default=0),  # the last number given; the row's lock makes them gap-free
    Column("created_us", Integer, nullable=False),
    Index("project_by_space", "space_id", "name", unique=True),
)

# What names and tags of a project's runs must look like.
naming = Table(
    "project_naming",
    metadata,
    Column("project_id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("name", Text, nullable=False, default=""),
    Column("tags", Text, nullable=False, default="[]"),  # JSON list of patterns
    Column("version", Integer, nullable=False),
    Column("changed_us", Integer, nullable=False),
    Column("changed_by", Text, nullable=False),
)
