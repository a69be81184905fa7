"""Tables of reviews. A review's items are written once; words are only added."""

from sqlalchemy import Column, Index, Integer, Table, Text, UniqueConstraint, column, table

from trackbed.db import metadata

space = table("space", column("id", Text), column("name", Text))  # of the access room; ids decide

protection = Table(
    "protection",
    metadata,
    Column("id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("kind", Text, nullable=False),  # path | template | alias | quota
    Column("pattern", Text, nullable=False),
    Column("approvals", Integer, nullable=False),
    Column("approvers", Text, nullable=False),  # JSON: names of people
    Column("version", Integer, nullable=False),
    Column("created_us", Integer, nullable=False),
    Column("created_by", Text, nullable=False),
    UniqueConstraint("space_id", "kind", "pattern", name="protection_once"),
)

review = Table(
    "review",
    metadata,
    Column("id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("state", Text, nullable=False),  # open | approved | rejected | withdrawn
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("author_id", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("commit_id", Text, nullable=False),
    Column("branch", Text, nullable=False),
    Column("remote", Text, nullable=False),
    Column("digest", Text, nullable=False),  # of all items
    Column("tree", Text, nullable=False),
    Column("created_us", Integer, nullable=False),
    Column("updated_us", Integer, nullable=False),
    Index("review_by_state", "space_id", "state", "created_us"),
    Index("review_by_commit", "space_id", "commit_id"),
)

item = Table(
    "review_item",
    metadata,
    Column("review_id", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Index("review_item_by_subject", "space_id", "kind", "subject"),
)

word = Table(
    "review_word",
    metadata,
    Column("review_id", Text, primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("space_id", Text, nullable=False),
    Column("person_id", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("time_us", Integer, nullable=False),
)

# Which reviews stand behind a run: written when it is made, so that it stays on the record.
run_review = Table(
    "run_review",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("review_id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Index("run_review_by_review", "review_id"),
)
