"""Who asks, what a role may do, and which spaces a query may see. Deny by default."""

from dataclasses import dataclass, field
from enum import StrEnum

from trackbed.base.errors import Denied, NotFound


class Role(StrEnum):
    VIEWER = "viewer"
    MEMBER = "member"
    MAINTAINER = "maintainer"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        return list(Role).index(self)


class Permission(StrEnum):
    """Declared by every route. The value is the least role, in the space of the thing asked for."""

    PUBLIC = "public"  # nobody is asked; the list of such routes is a reviewed snapshot
    SIGNED_IN = "signed_in"  # any person: own account, the pool's board
    READ = "read"  # viewer
    WRITE = "write"  # member: submit, log, add data; own runs only for stop and the like
    MAINTAIN = "maintain"  # maintainer: others' runs, registry aliases, project settings
    ADMIN = "admin"  # admin of the installation: people, tokens of others, spaces, nodes
    ATTEMPT = "attempt"  # the supervisor of an attempt, for its own attempt only


LEAST_ROLE: dict[Permission, Role] = {
    Permission.READ: Role.VIEWER,
    Permission.WRITE: Role.MEMBER,
    Permission.MAINTAIN: Role.MAINTAINER,
    Permission.ADMIN: Role.ADMIN,
}


class ActorKind(StrEnum):
    PERSON = "person"
    ATTEMPT = "attempt"
    SYSTEM = "system"


@dataclass(frozen=True)
class Actor:
    """The signed-in one. `id` is a person id, an attempt id, or the name of a loop."""

    kind: ActorKind
    id: str
    name: str = ""
    run_id: str = ""  # of an attempt: the only run that it may write
    space_id: str = ""  # of an attempt: the only space that it may read


@dataclass(frozen=True)
class Scope:
    """What an actor may touch. Every query takes one; `everything` is for the system's own loops only."""

    actor: Actor
    roles: dict[str, Role] = field(default_factory=dict[str, Role])  # space id → role
    admin: bool = False
    everything: bool = False

    def spaces(self, permission: Permission = Permission.READ) -> frozenset[str] | None:
        """Return ids of the spaces where the permission holds; None means all."""
        if self.everything or self.admin:
            return None
        least = LEAST_ROLE[permission].rank
        return frozenset(space for space, role in self.roles.items() if role.rank >= least)

    def may(self, permission: Permission, space_id: str) -> bool:
        spaces = self.spaces(permission)
        return spaces is None or space_id in spaces

    def require(self, permission: Permission, space_id: str, *, what: str) -> None:
        """Raise NotFound where the space may not even be read, else Denied.

        A stranger learns nothing about what exists behind a wall.
        """
        if self.may(permission, space_id):
            return
        if not self.may(Permission.READ, space_id):
            raise NotFound("not_found", what=what)
        raise Denied("role_too_low", what=what, needed=LEAST_ROLE[permission].value)


SYSTEM = Scope(Actor(ActorKind.SYSTEM, "system", "system"), everything=True)
