"""Rows of runs, attempts, stages and checkpoints.

`run.version` grows by one at every change that a person may have looked at; optimistic writes name the one they saw.
`run.epoch` grows with every attempt; whatever an attempt writes is conditioned on its own epoch being the newest.
"""

from sqlalchemy import Column, Float, Index, Integer, Table, Text, UniqueConstraint

from trackbed.db import metadata

run = Table(
    "run",
    metadata,
    Column("id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("space", Text, nullable=False),  # names for reading; ids decide
    Column("project_id", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("number", Integer, nullable=False),  # gap-free in its project
    Column("name", Text, nullable=False, default=""),
    Column("description", Text, nullable=False, default=""),
    Column("owner_id", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("cause", Text, nullable=False, default=""),
    Column("reason", Text, nullable=False, default=""),  # Reason as JSON: why it waits, or what ended it
    Column("tags", Text, nullable=False, default="[]"),  # JSON list
    Column("summary", Text, nullable=False, default="{}"),  # JSON object
    Column("priority", Text, nullable=False, default="normal"),
    Column("priority_rank", Integer, nullable=False, default=2),
    Column("cards", Integer, nullable=False, default=0),
    Column("outside", Integer, nullable=False, default=0),
    Column("create_key", Text, nullable=True),  # of an outside run: a repeated create finds it
    Column("spec", Text, nullable=False),
    Column("tree", Text, nullable=False, default=""),  # TreeFacts as JSON
    Column("tree_digest", Text, nullable=False, default=""),
    Column("environment_digest", Text, nullable=False, default=""),
    Column("environment", Text, nullable=False, default=""),  # EnvironmentRecord as JSON
    Column("reproduces", Text, nullable=False, default=""),
    Column("created_us", Integer, nullable=False),
    Column("queued_us", Integer, nullable=False, default=0),  # its place in the queue; a preempted run keeps it
    Column("started_us", Integer, nullable=False, default=0),
    Column("ended_us", Integer, nullable=False, default=0),
    Column("contact_us", Integer, nullable=False, default=0),
    Column("not_before_us", Integer, nullable=False, default=0),
    Column("attempt_id", Text, nullable=False, default=""),  # the newest
    Column("attempt", Integer, nullable=False, default=0),  # its number
    Column("epoch", Integer, nullable=False, default=0),
    Column("stage_index", Integer, nullable=False, default=0),
    Column("wish", Text, nullable=False, default=""),  # domain.outcome.Wish
    Column("wish_grace_s", Float, nullable=True),
    Column("used", Text, nullable=False, default="{}"),  # JSON: cause → retries used
    Column("card_seconds", Float, nullable=False, default=0.0),
    Column("step", Integer, nullable=False, default=0),
    Column("steps_total", Integer, nullable=False, default=0),
    Column("seconds_left", Float, nullable=True),
    Column("progress_us", Integer, nullable=False, default=0),
    Column("nondeterminism", Text, nullable=False, default="[]"),
    Column("version", Integer, nullable=False, default=1),
    UniqueConstraint("project_id", "number", name="run_number"),
    UniqueConstraint("space_id", "owner_id", "create_key", name="run_create_key"),
    Index("run_by_state", "state", "priority_rank", "queued_us"),
    Index("run_by_created", "created_us", "id"),
    Index("run_by_project", "project_id", "created_us", "id"),
    Index("run_by_owner", "owner_id", "created_us"),
    # All that tables of runs filter and order by, without the wide columns; names may be too long for PostgreSQL.
    Index(
        "run_listed",
        "space_id",
        "id",
        "project",
        "created_us",
        "state",
        "owner",
        "name",
        "tags",
        "number",
        "cards",
        "outside",
        "started_us",
        "ended_us",
        "priority",
        "cause",
    ).ddl_if(dialect="sqlite"),
    Index("run_listed_narrow", "space_id", "project", "created_us", "id", "state").ddl_if(dialect="postgresql"),
)

attempt = Table(
    "attempt",
    metadata,
    Column("id", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("space_id", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("stage", Text, nullable=False, default=""),
    Column("stage_index", Integer, nullable=False, default=0),
    Column("cause", Text, nullable=False, default=""),
    Column("reason", Text, nullable=False, default=""),
    Column("evidence", Text, nullable=False, default="{}"),
    Column("placement", Text, nullable=False, default="[]"),
    Column("cards", Integer, nullable=False, default=0),
    Column("created_us", Integer, nullable=False),
    Column("started_us", Integer, nullable=False, default=0),  # the first rank ran
    Column("ended_us", Integer, nullable=False, default=0),
    Column("contact_us", Integer, nullable=False, default=0),
    Column("submitted_us", Integer, nullable=False, default=0),  # handed to the engine
    Column("card_seconds", Float, nullable=False, default=0.0),
    Column("resume_name", Text, nullable=False, default=""),
    Column("resume_digest", Text, nullable=False, default=""),
    Column("resumed_from_step", Integer, nullable=True),
    Column("lost_steps", Integer, nullable=False, default=0),
    Column("last_step", Integer, nullable=True),
    Column("lost_us", Integer, nullable=False, default=0),  # declared gone; its cards are unknown until it is heard of
    Column("order_id", Text, nullable=False, default=""),
    Column("order_kind", Text, nullable=False, default=""),
    Column("order_grace_s", Float, nullable=False, default=0.0),
    Column("order_reason", Text, nullable=False, default=""),
    Column("order_us", Integer, nullable=False, default=0),
    Column("order_for", Text, nullable=False, default=""),  # the run that it makes room for
    Column("order_withdrawn", Integer, nullable=False, default=0),  # 1 to be said, 2 said
    Column("order_seen", Text, nullable=False, default=""),
    Column("node", Text, nullable=False, default=""),
    Column("boot_id", Text, nullable=False, default=""),
    Column("backlog_bytes", Integer, nullable=False, default=0),
    Column("salvaged", Integer, nullable=False, default=0),
    Column("outputs_digest", Text, nullable=False, default=""),
    Column("products", Text, nullable=False, default="{}"),  # JSON: product → tree digest, as reported so far
    UniqueConstraint("run_id", "number", name="attempt_number"),
    Index("attempt_by_state", "state"),
)

stage = Table(
    "stage",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("state", Text, nullable=False, default="waiting"),  # waiting | running | done | failed
    Column("products", Text, nullable=False, default="{}"),
    Column("attempt", Integer, nullable=False, default=0),
)

checkpoint = Table(
    "checkpoint",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("attempt_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("stage", Text, nullable=False, default=""),
    Column("step", Integer, nullable=False),
    Column("size_bytes", Integer, nullable=False, default=0),
    Column("created_us", Integer, nullable=False),
    Column("recorded_us", Integer, nullable=False),
    Column("current", Integer, nullable=False, default=0),  # the one that the next attempt of its stage starts from
    Index("checkpoint_by_digest", "digest"),
)
