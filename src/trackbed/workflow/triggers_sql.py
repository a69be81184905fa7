"""Tables of triggers. The secret of a webhook is in none of them: it is derived from a key of the server's home folder."""

from sqlalchemy import Column, Index, Integer, Table, Text, UniqueConstraint

from trackbed.db import metadata

trigger = Table(
    "trigger_rule",
    metadata,
    Column("id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("branch", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("remote", Text, nullable=False),
    Column("status_url", Text, nullable=False),
    Column("token_env", Text, nullable=False),
    Column("pipeline", Text, nullable=False),  # SubmitRequest as JSON; empty: of the commit
    Column("owner_id", Text, nullable=False),  # in whose name it starts runs
    Column("owner", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_us", Integer, nullable=False),
    UniqueConstraint("space_id", "name", name="trigger_name"),
)

delivery = Table(
    "trigger_delivery",
    metadata,
    Column("id", Text, primary_key=True),
    Column("trigger_id", Text, nullable=False),
    Column("space_id", Text, nullable=False),
    Column("sent_id", Text, nullable=False),  # the forge's own id of the sending
    Column("body", Text, nullable=False),  # digest: the same body again is the same delivery
    Column("state", Text, nullable=False),
    Column("commit_id", Text, nullable=False),
    Column("branch", Text, nullable=False),
    Column("by_whom", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("tree", Text, nullable=False),  # TreeFacts as JSON, where a git hook sent the code along
    Column("run_id", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("told", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("created_us", Integer, nullable=False),
    Column("updated_us", Integer, nullable=False),
    UniqueConstraint("trigger_id", "sent_id", name="delivery_once"),
    UniqueConstraint("trigger_id", "body", name="delivery_body_once"),
    Index("delivery_by_state", "state", "created_us"),
    Index("delivery_by_commit", "space_id", "commit_id"),
)

# How far the journal was read for new versions of datasets.
cursor = Table(
    "trigger_cursor", metadata, Column("name", Text, primary_key=True), Column("position", Integer, nullable=False)
)
