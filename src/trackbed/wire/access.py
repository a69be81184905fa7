"""People, tokens, spaces, projects."""

import msgspec


class LoginRequest(msgspec.Struct, kw_only=True):
    """Redeem a one-time login link or sign in with a token."""

    code: str


class Me(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    name: str
    admin: bool = False
    roles: dict[str, str] = {}  # space name → role
    csrf: str = ""  # send back as X-Trackbed-CSRF with every unsafe request that uses the cookie


class TokenRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    label: str = ""
    expires_s: float | None = None
    person: str = ""  # admin only: for somebody else


class TokenView(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    label: str = ""
    person: str = ""
    created_us: int = 0
    expires_us: int = 0
    last_used_us: int = 0
    revoked: bool = False
    secret: str = ""  # only in the answer that made it


class PersonRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    name: str
    admin: bool = False


class PersonView(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    name: str
    admin: bool = False
    disabled: bool = False
    login_url: str = ""  # only in the answer that made it


class SpaceRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    name: str
    accept_one_trust_domain: bool = False


class SpaceView(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    name: str
    role: str = ""
    members: dict[str, str] = {}  # person name → role


class RoleRequest(msgspec.Struct, kw_only=True):
    person: str
    role: str  # viewer | member | maintainer; "" takes it away


class NamingRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What names and tags of a project's runs must look like; `expected` is the version that its writer saw."""

    space: str = "default"
    name: str = ""  # pattern; empty: any name
    tags: list[str] = []  # patterns; each needs one tag that fits
    expected: int | None = None


class NamingView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A rule with an example that fits each of its patterns."""

    name: str = ""
    tags: list[str] = []
    example: str = ""
    tag_examples: list[str] = []
    version: int = 0


class ProjectView(msgspec.Struct, kw_only=True, omit_defaults=True):
    name: str
    space: str
    runs: int = 0
    created_us: int = 0
    aliases: list[str] = []
    naming: NamingView | None = None
