"""People, roles, spaces, projects, tokens. Who asks is one `Scope`; every query of persons' data takes it.

A secret is shown once, in the answer that made it; the database keeps its BLAKE3. Kinds of secrets:

    tbp_  of a person: CLI and API          until revoked or expired
    tbs_  of a browser session (cookie)     30 days
    tbl_  one-time login link               15 minutes, one use
    tba_  of an attempt, for its supervisor until replaced or revoked

    rules ◄─ tables ◄─ people, tokens, spaces, projects
"""

from trackbed.access.people import Person, create_person, found, list_people, person_named, require_admin
from trackbed.access.projects import (
    ProjectRow,
    ensure_project,
    find_project,
    list_projects,
    next_run_number,
    rename_project,
)
from trackbed.access.spaces import SpaceRow, create_space, list_spaces, set_role, space_named, space_names
from trackbed.access.tokens import (
    Login,
    authenticate,
    issue_attempt_token,
    issue_login_link,
    issue_token,
    list_tokens,
    redeem,
    revoke_attempt_token,
    revoke_token,
    scope_of,
    touch,
)

__all__ = [
    "Login",
    "Person",
    "ProjectRow",
    "SpaceRow",
    "authenticate",
    "create_person",
    "create_space",
    "ensure_project",
    "find_project",
    "found",
    "issue_attempt_token",
    "issue_login_link",
    "issue_token",
    "list_people",
    "list_projects",
    "list_spaces",
    "list_tokens",
    "next_run_number",
    "person_named",
    "redeem",
    "rename_project",
    "require_admin",
    "revoke_attempt_token",
    "revoke_token",
    "scope_of",
    "set_role",
    "space_named",
    "space_names",
    "touch",
]
