"""Reviews: what is protected in a space, and whether somebody else than its author has looked at it.

A review is of digests: an approval holds for exactly these bytes, wherever they are used, and for no others. Items of a
review never change; other bytes are another review.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from blake3 import blake3
from sqlalchemy import Row, func, select, update

from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput, Conflict, Denied, Fault, NotFound
from trackbed.db import ReadTx, Tx, scope_clause
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Scope
from trackbed.sources.reviewing import matches
from trackbed.sources.reviews_sql import item, protection, review, run_review, space, word
from trackbed.wire.reviews import (
    CheckReply,
    ProtectionRequest,
    ProtectionView,
    ReviewItem,
    ReviewRequest,
    ReviewView,
    ReviewWord,
)

DEFAULT_SPACE = "default"
MOST_ITEMS = 1000
_PREFIX = 6
_AT_ONCE = 500


# what is protected


def protect(tx: Tx, scope: Scope, asked: ProtectionRequest) -> ProtectionView:
    """Set a rule, if it stands as its writer saw it.

    Raises:
        BadInput: `protection_wrong` with every fault.
        Conflict: `protection_moved`, with the rule that stands.
        NotFound, Denied: the space, or the right to maintain it, is missing.
    """
    space_id = space_id_of(tx, scope, asked.space, Permission.MAINTAIN)
    faults = [Fault("protection_empty", "pattern")] if not asked.pattern.strip() else []
    if not 1 <= asked.approvals <= 20:
        faults.append(Fault("protection_approvals", "approvals", None, {"given": asked.approvals}))
    if asked.approvers and len(set(asked.approvers)) < asked.approvals:
        params = {"approvals": asked.approvals, "approvers": ", ".join(asked.approvers)}
        faults.append(Fault("protection_too_few", "approvers", None, params))
    if faults:
        raise BadInput("protection_wrong", faults=faults)
    mine = (protection.c.space_id == space_id, protection.c.kind == asked.kind, protection.c.pattern == asked.pattern)
    tx.one(select(space.c.id).where(space.c.id == space_id).with_for_update())
    row = tx.one(select(protection).where(*mine))
    stands = row.version if row is not None else 0
    if stands != asked.version:
        raise Conflict(
            "protection_moved", pattern=asked.pattern, given=asked.version, version=stands,
            approvals=row.approvals if row is not None else 0,
            approvers=", ".join(msgspec.json.decode(row.approvers)) or "-" if row is not None else "-",
        )  # fmt: skip
    values: dict[str, Any] = {
        "approvals": asked.approvals, "approvers": msgspec.json.encode(asked.approvers).decode(), "version": stands + 1,
        "created_us": tx.now_us, "created_by": tx.actor.name or tx.actor.id,
    }  # fmt: skip
    if row is None:
        tx.execute(
            protection.insert().values(
                id=new_id("prt"), space_id=space_id, kind=asked.kind, pattern=asked.pattern, **values
            )
        )
    else:
        tx.execute(update(protection).where(*mine).values(**values))
    data = {"kind": asked.kind, "pattern": asked.pattern, "approvals": asked.approvals, "approvers": asked.approvers}
    tx.emit(Event("protection.set", asked.pattern, space_id=space_id, data=data))
    return next(
        one for one in protections(tx, scope, asked.space) if (one.kind, one.pattern) == (asked.kind, asked.pattern)
    )


def unprotect(tx: Tx, scope: Scope, kind: str, pattern: str, *, space: str = DEFAULT_SPACE) -> None:
    """Take a rule away.

    Raises:
        NotFound: `protection_unknown`.
    """
    space_id = space_id_of(tx, scope, space, Permission.MAINTAIN)
    mine = (protection.c.space_id == space_id, protection.c.kind == kind, protection.c.pattern == pattern)
    if not tx.execute(protection.delete().where(*mine)).rowcount:
        raise NotFound("protection_unknown", kind=kind, pattern=pattern)
    tx.emit(Event("protection.dropped", pattern, space_id=space_id, data={"kind": kind, "pattern": pattern}))


def protections(tx: ReadTx, scope: Scope, where: str = "", kind: str = "") -> list[ProtectionView]:
    """Return the rules of one space, or of all that the scope may read."""
    stmt = select(protection, space.c.name.label("space")).join(space, space.c.id == protection.c.space_id)
    stmt = stmt.where(scope_clause(protection, scope))
    if where:
        stmt = stmt.where(protection.c.space_id == space_id_of(tx, scope, where))
    if kind:
        stmt = stmt.where(protection.c.kind == kind)
    rows = tx.rows(stmt.order_by(protection.c.kind, protection.c.pattern, protection.c.space_id))
    return [_rule(row) for row in rows]


def _rule(row: Row[Any]) -> ProtectionView:
    return ProtectionView(
        kind=row.kind, pattern=row.pattern, space=row.space, approvals=row.approvals,
        approvers=msgspec.json.decode(row.approvers), version=row.version, created_us=row.created_us,
        created_by=row.created_by,
    )  # fmt: skip


# whether it was looked at


def check(tx: ReadTx, scope: Scope, items: Iterable[ReviewItem], *, space: str = DEFAULT_SPACE) -> CheckReply:
    """Return which of these are protected and not approved, who would have to, and which reviews approved the others."""
    rules = protections(tx, scope, space or DEFAULT_SPACE)
    asked = {
        (one.kind, one.subject, one.digest): one
        for one in items
        if any(matches(rule, one.kind, one.subject) for rule in rules)
    }
    if not asked:
        return CheckReply()
    space_id = space_id_of(tx, scope, space)
    found = _reviews_of(tx, space_id, asked)
    approved = {key: one for key, states in found.items() if (one := states.get("approved"))}
    waiting = {
        states["open"].id: states["open"] for key, states in found.items() if "open" in states and key not in approved
    }
    missing = [one for key, one in asked.items() if key not in approved]
    lacking = [rule for rule in rules if any(matches(rule, one.kind, one.subject) for one in missing)]
    behind = {row.id: row for row in approved.values()}
    return CheckReply(
        missing=missing, protections=lacking, reviews=[_view(tx, row, rules, space) for row in behind.values()],
        open=[_view(tx, row, rules, space) for row in waiting.values()],
    )  # fmt: skip


def _reviews_of(
    tx: ReadTx, space_id: str, asked: Iterable[tuple[str, str, str]]
) -> dict[tuple[str, str, str], dict[str, Row[Any]]]:
    """Return the newest review in each state of every thing."""
    wanted = set(asked)
    digests = sorted({digest for _, _, digest in wanted})
    found: dict[tuple[str, str, str], dict[str, Row[Any]]] = {}
    for start in range(0, len(digests), _AT_ONCE):
        some = digests[start : start + _AT_ONCE]
        stmt = select(review, item.c.kind, item.c.subject, item.c.digest.label("item_digest")).join(
            item, item.c.review_id == review.c.id
        )
        stmt = stmt.where(item.c.space_id == space_id, item.c.digest.in_(some)).order_by(review.c.created_us)
        for row in tx.rows(stmt):
            key = (row.kind, row.subject, row.item_digest)
            if key in wanted:
                found.setdefault(key, {})[row.state] = row
    return found


def faults_of(reply: CheckReply, *, field: str = "") -> list[Fault]:
    """Return what is missing as faults: what, who may approve, how."""
    return [Fault("review_missing", field, None, _told(reply, one)) for one in reply.missing]


def require(tx: ReadTx, scope: Scope, one: ReviewItem, *, space: str = DEFAULT_SPACE) -> None:
    """Refuse a change of a protected thing that nobody else approved.

    Raises:
        Denied: `review_missing`: what, who may approve, how.
    """
    reply = check(tx, scope, [one], space=space)
    if reply.missing:
        raise Denied("review_missing", **_told(reply, one))


def _told(reply: CheckReply, one: ReviewItem) -> dict[str, Any]:
    rule = next(rule for rule in reply.protections if matches(rule, one.kind, one.subject))
    waiting = next((each.id for each in reply.open if any(i.digest == one.digest for i in each.items)), "-")
    return {
        "kind": one.kind, "subject": one.subject, "digest": one.digest[:15], "pattern": rule.pattern,
        "approvals": rule.approvals, "approvers": ", ".join(rule.approvers) or "*", "review": waiting,
    }  # fmt: skip


# verbs


def digest_of(items: Sequence[ReviewItem]) -> str:
    """The digest of everything that is looked at, in any order."""
    rows = sorted((one.kind, one.subject, one.digest) for one in items)
    return "b3:" + blake3(msgspec.json.encode(rows)).hexdigest()


def request(tx: Tx, scope: Scope, asked: ReviewRequest) -> ReviewView:
    """Ask for a review. The same things asked by the same person again are the review that is open already.

    Raises:
        BadInput: `review_items_wrong`.
        NotFound, Denied: the space, or the right to write in it, is missing.
    """
    space_id = space_id_of(tx, scope, asked.space, Permission.WRITE)
    if not 0 < len(asked.items) <= MOST_ITEMS or any(not one.subject or not one.digest for one in asked.items):
        raise BadInput("review_items_wrong", count=len(asked.items), most=MOST_ITEMS)
    digest = digest_of(asked.items)
    same = select(review).where(
        review.c.space_id == space_id, review.c.digest == digest, review.c.state == "open",
        review.c.author_id == tx.actor.id,
    )  # fmt: skip
    row = tx.one(same)
    if row is None:
        made = new_id("rev")
        tx.execute(review.insert().values(
            id=made, space_id=space_id, state="open", title=asked.title or asked.items[0].subject,
            description=asked.description, author_id=tx.actor.id, author=tx.actor.name or tx.actor.id,
            commit_id=asked.commit, branch=asked.branch, remote=asked.remote, digest=digest, tree=asked.tree,
            created_us=tx.now_us, updated_us=tx.now_us,
        ))  # fmt: skip
        rows = {(one.kind, one.subject, one.digest) for one in asked.items}
        tx.execute(item.insert(), [
            {"review_id": made, "space_id": space_id, "kind": kind, "subject": subject, "digest": each}
            for kind, subject, each in sorted(rows)
        ])  # fmt: skip
        data = {"title": asked.title, "digest": digest, "items": len(rows), "commit": asked.commit}
        tx.emit(Event("review.requested", made, space_id=space_id, data=data))
    else:
        made = row.id
    return show(tx, scope, made)


def say(tx: Tx, scope: Scope, ref: str, decision: str, *, digest: str, text: str = "") -> ReviewView:
    """Approve, reject, comment or withdraw; an approval of enough others settles the review.

    Raises:
        Conflict: `review_moved`: the digest is not that of the review; `review_settled`.
        Denied: `review_own`: authors do not approve their own; `review_not_approver`, with who may.
        BadInput: `review_comment_empty`.
    """
    row = _row(tx, scope, ref, Permission.WRITE, lock=True)
    if digest != row.digest:
        raise Conflict("review_moved", review=row.id, given=digest[:15], stands=row.digest[:15])
    if decision != "comment" and row.state in ("rejected", "withdrawn"):
        raise Conflict("review_settled", review=row.id, state=row.state)
    if decision == "comment" and not text.strip():
        raise BadInput("review_comment_empty", review=row.id)
    own = tx.actor.id == row.author_id
    rules = _rules_of(tx, row)
    may = _approvers(rules)
    if decision in ("approve", "reject"):
        if own and decision == "approve":
            raise Denied("review_own", review=row.id, approvers=", ".join(may) or "*")
        if not own and may and tx.actor.name not in may:
            raise Denied("review_not_approver", review=row.id, person=tx.actor.name, approvers=", ".join(may))
    if decision == "withdraw" and not own:
        scope.require(Permission.MAINTAIN, row.space_id, what=f"review {row.id}")
    position = (tx.scalar(select(func.max(word.c.position)).where(word.c.review_id == row.id)) or 0) + 1
    tx.execute(word.insert().values(
        review_id=row.id, position=position, space_id=row.space_id, person_id=tx.actor.id,
        person=tx.actor.name or tx.actor.id, decision=decision, text=text, digest=digest, time_us=tx.now_us,
    ))  # fmt: skip
    state = _state_after(tx, row, decision, rules)
    tx.execute(update(review).where(review.c.id == row.id).values(state=state, updated_us=tx.now_us))
    kind = {"approve": "review.approved", "reject": "review.rejected", "withdraw": "review.withdrawn"}.get(
        decision, "review.commented"
    )
    data = {"digest": digest, "state": state, "commit": row.commit_id, "title": row.title}
    tx.emit(Event(kind, row.id, space_id=row.space_id, data=data))
    return show(tx, scope, row.id)


def _state_after(tx: ReadTx, row: Row[Any], decision: str, rules: list[ProtectionView]) -> str:
    if decision in ("reject", "withdraw"):
        return "rejected" if decision == "reject" else "withdrawn"
    if decision == "comment" or row.state != "open":
        return row.state
    return "open" if _still_needed(tx, row, rules) else "approved"


def _still_needed(tx: ReadTx, row: Row[Any], rules: list[ProtectionView]) -> int:
    people = {one.person for one in _words(tx, row.id) if one.decision == "approve" and one.digest == row.digest}
    needed = [1 - len(people)]  # of a review that no rule asks for
    for rule in rules:
        those = people & set(rule.approvers) if rule.approvers else people
        needed.append(rule.approvals - len(those))
    return max(0, *needed)


def _rules_of(tx: ReadTx, row: Row[Any]) -> list[ProtectionView]:
    """The rules that any item of a review falls under, whoever asks."""
    stmt = select(protection, space.c.name.label("space")).join(space, space.c.id == protection.c.space_id)
    rules = [_rule(one) for one in tx.rows(stmt.where(protection.c.space_id == row.space_id))]
    items = tx.rows(select(item).where(item.c.review_id == row.id))
    return [rule for rule in rules if any(matches(rule, one.kind, one.subject) for one in items)]


def _approvers(rules: list[ProtectionView]) -> list[str]:
    return sorted({name for rule in rules for name in rule.approvers})


def show(tx: ReadTx, scope: Scope, ref: str) -> ReviewView:
    """Return a review by its id, or a unique prefix of it.

    Raises:
        NotFound: `review_unknown`.
    """
    row = _row(tx, scope, ref, Permission.READ)
    name = tx.scalar(select(space.c.name).where(space.c.id == row.space_id))
    return _view(tx, row, _rules_of(tx, row), name)


def list_reviews(
    tx: ReadTx, scope: Scope, *, where: str = "", state: str = "", commit: str = "", run_id: str = "", limit: int = 100
) -> list[ReviewView]:
    """Return reviews, the newest first: of a space, in a state, of a commit (or its first digits), behind a run."""
    stmt = select(review, space.c.name.label("space")).join(space, space.c.id == review.c.space_id)
    stmt = stmt.where(scope_clause(review, scope))
    if where:
        stmt = stmt.where(review.c.space_id == space_id_of(tx, scope, where))
    if state:
        stmt = stmt.where(review.c.state == state)
    if commit:
        stmt = stmt.where(review.c.commit_id.startswith(commit, autoescape=True))
    if run_id:
        stmt = stmt.join(run_review, run_review.c.review_id == review.c.id).where(run_review.c.run_id == run_id)
    rows = tx.rows(stmt.order_by(review.c.created_us.desc()).limit(max(1, min(limit, 1000))))
    return [_view(tx, row, _rules_of(tx, row), row.space) for row in rows]


def note_run(tx: Tx, run_id: str, space_id: str, reviews: Iterable[str]) -> None:
    """Keep on the record which reviews stand behind a run."""
    rows = [{"run_id": run_id, "review_id": one, "space_id": space_id} for one in sorted(set(reviews))]
    if rows:
        tx.execute(run_review.insert(), rows)


def last_approved(tx: ReadTx, space_id: str, subject: str, *, but: str) -> str:
    """Return the tree of the review that approved other bytes of a path last; empty where there is none."""
    stmt = select(review.c.tree).join(review, review.c.id == item.c.review_id)
    stmt = stmt.where(
        item.c.space_id == space_id, item.c.kind == "path", item.c.subject == subject, item.c.digest != but,
        review.c.state == "approved",
    )  # fmt: skip
    return tx.scalar(stmt.order_by(review.c.updated_us.desc()).limit(1)) or ""


def is_named(tx: ReadTx, scope: Scope, digest: str) -> bool:
    """Tell whether a review that the scope may read has this tree."""
    stmt = select(review.c.id).where(review.c.tree == digest, scope_clause(review, scope)).limit(1)
    return tx.one(stmt) is not None


def space_id_of(tx: ReadTx, scope: Scope, name: str, permission: Permission = Permission.READ) -> str:
    """Return the id of a space by its name, if the scope has the permission there."""
    found = tx.scalar(select(space.c.id).where(space.c.name == (name or DEFAULT_SPACE)))
    what = f"space {name or DEFAULT_SPACE}"
    if found is None:
        raise NotFound("not_found", what=what)
    scope.require(permission, found, what=what)
    return found


def _row(tx: ReadTx, scope: Scope, ref: str, permission: Permission, *, lock: bool = False) -> Row[Any]:
    stmt = select(review).where(scope_clause(review, scope))
    bare = ref if ref.startswith("rev_") else f"rev_{ref}"
    if len(bare) < len("rev_") + _PREFIX:
        raise NotFound("review_unknown", ref=ref[:100])
    stmt = stmt.where(review.c.id.startswith(bare, autoescape=True)).limit(2)
    rows = tx.rows(stmt.with_for_update() if lock else stmt)
    if len(rows) != 1:
        raise NotFound("review_unknown", ref=ref[:100])
    scope.require(permission, rows[0].space_id, what=f"review {rows[0].id}")
    return rows[0]


def _words(tx: ReadTx, review_id: str) -> list[ReviewWord]:
    rows = tx.rows(select(word).where(word.c.review_id == review_id).order_by(word.c.position))
    return [
        ReviewWord(person=row.person, decision=row.decision, text=row.text, digest=row.digest, time_us=row.time_us)
        for row in rows
    ]


def _view(tx: ReadTx, row: Row[Any], rules: list[ProtectionView], where: str) -> ReviewView:
    items = tx.rows(select(item).where(item.c.review_id == row.id).order_by(item.c.kind, item.c.subject))
    mine = [rule for rule in rules if any(matches(rule, one.kind, one.subject) for one in items)]
    return ReviewView(
        id=row.id, state=row.state, title=row.title, description=row.description, space=where, author=row.author,
        commit=row.commit_id, branch=row.branch, remote=row.remote, digest=row.digest, tree=row.tree,
        items=[ReviewItem(kind=one.kind, subject=one.subject, digest=one.digest) for one in items],
        words=_words(tx, row.id), needed=_still_needed(tx, row, mine) if row.state == "open" else 0,
        approvers=_approvers(mine), created_us=row.created_us, updated_us=row.updated_us,
    )  # fmt: skip
