"""`trackbed review …`: what is protected, who looked at it, and the check that a merge needs."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.cli import output
from trackbed.cli.context import client, current, say
from trackbed.cli.options import Message, Space, group

if TYPE_CHECKING:
    from trackbed.wire.reviews import CheckReply, ReviewItem, ReviewView

app = group()
Review = Annotated[str, typer.Argument(metavar="REVIEW", help=say("cli.opt.review"), show_default=False)]
Kind = Annotated[str, typer.Option("--kind", metavar="KIND", help=say("cli.opt.review_kind"))]
Pattern = Annotated[str, typer.Argument(metavar="PATTERN", help=say("cli.opt.review_pattern"), show_default=False)]
Folder = Annotated[Path, typer.Option("--folder", metavar="DIR", help=say("cli.opt.review_folder"))]


@app.command("protect", help=say("cli.about.review.protect"))
def protect(
    pattern: Pattern,
    kind: Kind = "path",
    approvals: Annotated[int, typer.Option("--approvals", metavar="N", help=say("cli.opt.review_approvals"))] = 1,
    by: Annotated[
        list[str] | None, typer.Option("--by", metavar="PERSON", help=say("cli.opt.review_by"), show_default=False)
    ] = None,
    expected: Annotated[
        int | None,
        typer.Option("--expected", metavar="VERSION", help=say("cli.opt.review_expected"), show_default=False),
    ] = None,
    space: Space = "default",
) -> None:
    from trackbed.wire.reviews import ProtectionRequest

    with client() as api:
        rules = api.reviews.rules(space, kind)
        seen = next((one.version for one in rules if one.pattern == pattern), 0) if expected is None else expected
        asked = ProtectionRequest(
            kind=kind, pattern=pattern, space=space, approvals=approvals, approvers=by or [], version=seen,  # type: ignore[arg-type] - the server judges it
        )  # fmt: skip
        made = api.reviews.protect(asked)
    if not output.emit_json(made):
        who = ", ".join(made.approvers) or say("cli.anybody_else")
        output.line(say("cli.protected", kind=say(f"cli.kind.{made.kind}"), pattern=made.pattern, who=who))


@app.command("unprotect", help=say("cli.about.review.unprotect"))
def unprotect(pattern: Pattern, kind: Kind = "path", space: Space = "default") -> None:
    with client() as api:
        api.reviews.unprotect(kind, pattern, space)
    if not output.emit_json({"kind": kind, "pattern": pattern}):
        output.line(say("cli.unprotected", pattern=pattern))


@app.command("rules", help=say("cli.about.review.rules"))
def rules() -> None:
    with client() as api:
        found = api.reviews.rules()
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{name}") for name in ("kind", "pattern", "space", "approvals", "approvers")]
    rows = [
        [
            say(f"cli.kind.{one.kind}"),
            one.pattern,
            one.space,
            str(one.approvals),
            ", ".join(one.approvers) or say("cli.anybody_else"),
        ]
        for one in found
    ]
    output.table(head, rows, empty=say("cli.no_rules"))


@app.command("request", help=say("cli.about.review.request"))
def request(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]...", help=say("cli.opt.review_paths"), show_default=False)
    ] = None,
    title: Annotated[str, typer.Option("--title", "-t", metavar="TEXT", help=say("cli.opt.review_title"))] = "",
    message: Message = "",
    folder: Folder = Path(),
    template: Annotated[
        Path | None, typer.Option("--template", metavar="FILE", help=say("cli.opt.review_template"), show_default=False)
    ] = None,
    alias: Annotated[
        str, typer.Option("--alias", metavar="MODEL@ALIAS=VERSION", help=say("cli.opt.review_alias"))
    ] = "",
    space: Space = "default",
) -> int:
    from trackbed.wire.reviews import ReviewRequest

    with client() as api:
        items = _others(api, template, alias)
        if items:
            made = api.reviews.request(ReviewRequest(items=items, title=title, description=message, space=space))
        else:
            made = api.reviews.request_code(folder, paths or [], title=title, description=message, space=space)
    if made is None:
        if not output.emit_json(None):
            output.line(say("cli.nothing_to_review"))
        return 0
    if not output.emit_json(made):
        output.line(say("cli.review_requested", id=made.id, count=len(made.items)))
        output.note(say("cli.review_next", id=made.id, who=", ".join(made.approvers) or say("cli.anybody_else")))
    return 0


def _others(api: "object", template: Path | None, alias: str) -> "list[ReviewItem]":
    from blake3 import blake3

    from trackbed.base.errors import BadInput
    from trackbed.client.api import Client
    from trackbed.wire.reviews import ReviewItem
    from trackbed.workflow.template import read_template

    assert isinstance(api, Client)
    if template is not None:
        text = template.read_text(encoding="utf-8")
        read, faults = read_template(text)
        if faults:
            raise BadInput("template_wrong", faults=faults, count=len(faults))
        return [ReviewItem(kind="template", subject=read.name, digest="b3:" + blake3(text.encode()).hexdigest())]
    if alias:
        subject, equals, number = alias.rpartition("=")
        if not equals or "@" not in subject:
            raise BadInput("review_alias_form", given=alias)
        found = api.models.resolve(f"{subject.partition('@')[0]}@{number}")
        return [ReviewItem(kind="alias", subject=subject, digest=found.digest)]
    return []


@app.command("list", help=say("cli.about.review.list"))
def list_reviews(
    state: Annotated[str, typer.Option("--state", metavar="STATE", help=say("cli.opt.review_state"))] = "",
    commit: Annotated[str, typer.Option("--commit", metavar="COMMIT", help=say("cli.opt.review_commit"))] = "",
    run: Annotated[str, typer.Option("--run", metavar="RUN", help=say("cli.opt.review_run"))] = "",
) -> None:
    with client() as api:
        found = api.reviews.of_run(run) if run else api.reviews.all(state=state, commit=commit)
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{name}") for name in ("review", "state", "title", "person", "commit", "created")]
    rows = [
        [
            one.id,
            say(f"cli.review_state.{one.state}"),
            one.title,
            one.author,
            one.commit[:9],
            output.when(one.created_us),
        ]
        for one in found
    ]
    output.table(head, rows, empty=say("cli.no_reviews"))


@app.command("show", help=say("cli.about.review.show"))
def show(review: Review) -> None:
    from trackbed.cli.code import lines_of

    with client() as api:
        found = api.reviews.show(review)
    if output.emit_json(found):
        return
    _tell(found)
    for file in found.files:
        output.line()
        output.line(f"+++ {file.path}  {file.digest_after[:12]}")
        for line in lines_of(file):
            output.line(line)


def _tell(found: "ReviewView") -> None:
    output.facts([
        (say("cli.word.review"), found.id),
        (say("cli.word.state"), say(f"cli.review_state.{found.state}")),
        (say("cli.word.title"), found.title),
        (say("cli.word.description"), found.description),
        (say("cli.word.person"), f"{found.author}  {output.when(found.created_us)}"),
        (say("cli.word.commit"), f"{found.commit[:12]} {found.branch}".strip()),
        (say("cli.word.digest"), found.digest),
        (say("cli.word.approvers"), ", ".join(found.approvers) or say("cli.anybody_else")),
    ])  # fmt: skip
    for one in found.items:
        output.line(f"  {say(f'cli.kind.{one.kind}')}  {one.subject}  {one.digest[:15]}")
    for word in found.words:
        text = f": {word.text}" if word.text else ""
        output.line(f"  {output.when(word.time_us)}  {word.person}  {say(f'cli.decision.{word.decision}')}{text}")


def _decide(review: str, decision: str, message: str) -> None:
    with client() as api:
        seen = api.reviews.show(review)
        found = api.reviews.say(seen.id, decision, digest=seen.digest, text=message)
    if not output.emit_json(found):
        output.line(
            say("cli.review_now", id=found.id, state=say(f"cli.review_state.{found.state}"), needed=found.needed)
        )


@app.command("approve", help=say("cli.about.review.approve"))
def approve(review: Review, message: Message = "") -> None:
    _decide(review, "approve", message)


@app.command("reject", help=say("cli.about.review.reject"))
def reject(review: Review, message: Message = "") -> None:
    _decide(review, "reject", message)


@app.command("comment", help=say("cli.about.review.comment"))
def comment(review: Review, message: Message = "") -> None:
    _decide(review, "comment", message)


@app.command("withdraw", help=say("cli.about.review.withdraw"))
def withdraw(review: Review, message: Message = "") -> None:
    _decide(review, "withdraw", message)


@app.command("check", help=say("cli.about.review.check"))
def check(
    commit: Annotated[str, typer.Option("--commit", metavar="COMMIT", help=say("cli.opt.review_check"))] = "",
    folder: Folder = Path(),
    space: Space = "default",
) -> int:
    from trackbed.sources.commits import commit_of, files_of
    from trackbed.sources.reviewing import matches, working_files
    from trackbed.wire.reviews import CheckReply, ReviewItem

    with client(patience_s=10.0) as api:
        rules = api.reviews.rules(space, "path")
        if not rules:
            return _judge(CheckReply(), commit)

        def wanted(path: str) -> bool:
            return any(matches(rule, "path", path) for rule in rules)

        found = files_of(commit, wanted, folder=folder) if commit else working_files(folder, wanted)
        items = [ReviewItem(kind="path", subject=path, digest=digest) for path, digest in found]
        full = commit_of(commit, folder=folder) if commit else ""
        return _judge(api.reviews.check(items, space=space, commit=full), full)


def _judge(found: "CheckReply", commit: str) -> int:
    if output.emit_json(found):
        return 1 if found.missing else 0
    if not found.missing:
        output.line(say("cli.review_check_good", count=len(found.reviews)))
        return 0
    output.line(say("cli.review_check_missing", count=len(found.missing), commit=commit[:12] or "-"))
    for one in found.missing:
        output.line(f"  {one.subject}  {one.digest[:15]}")
    for rule in found.protections:
        who = ", ".join(rule.approvers) or say("cli.anybody_else")
        output.line(say("cli.review_check_rule", pattern=rule.pattern, approvals=rule.approvals, who=who))
    for review in found.open:
        output.line(say("cli.review_check_open", id=review.id, title=review.title))
    if not found.open:
        output.line(say("cli.review_check_way"))
    return 1


_HOOK = """\
#!/bin/sh
# {about}
ref="$1"; new="$3"
case "$ref" in
  {branches}) ;;
  *) exit 0 ;;
esac
case "$new" in
  *[!0]*) ;;
  *) exit 0 ;;
esac
{check} review check --commit "$new" --space {space} >&2
"""


@app.command("hook", help=say("cli.about.review.hook"))
def hook(
    branch: Annotated[
        list[str] | None,
        typer.Option("--branch", metavar="PATTERN", help=say("cli.opt.review_branch"), show_default=False),
    ] = None,
    install: Annotated[
        Path | None, typer.Option("--install", metavar="DIR", help=say("cli.opt.review_install"), show_default=False)
    ] = None,
    space: Space = "default",
) -> None:
    server = f" --server {shlex.quote(current().server)}" if current().server else ""
    text = _HOOK.format(
        about=say("cli.hook_about"), space=shlex.quote(space),
        branches="|".join(f"refs/heads/{branch_pattern(one)}" for one in branch or ["main", "master"]),
        check=f"{shlex.quote(sys.executable)} -m trackbed{server}",
    )  # fmt: skip
    if install is None:
        output.line(text.rstrip())
        return
    place = install_hook(install, "update", text)
    if not output.emit_json({"path": str(place)}):
        output.line(say("cli.hook_installed", path=str(place)))


def install_hook(repository: Path, name: str, text: str) -> Path:
    """Write a hook into a repository, bare or not; the same again is fine.

    Raises:
        BadInput: `hook_no_repository`.
        Conflict: `hook_taken`: another hook of this name stands there.
    """
    from trackbed.base.errors import BadInput, Conflict

    bare = (repository / "HEAD").is_file()
    folder = repository / "hooks" if bare else repository / ".git" / "hooks"
    if not folder.parent.is_dir():
        raise BadInput("hook_no_repository", folder=str(repository))
    place = folder / name
    if place.exists() and place.read_text() != text:
        raise Conflict("hook_taken", path=str(place))
    folder.mkdir(exist_ok=True)
    place.write_text(text)
    place.chmod(0o755)
    return place


def branch_pattern(branch: str) -> str:
    """A branch as a pattern of `case`: only `*` keeps its meaning."""
    return "*".join(shlex.quote(part) if part else "" for part in branch.split("*"))
