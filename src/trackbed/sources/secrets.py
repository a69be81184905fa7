"""What must not leave a laptop inside a code tree: by name, and by content with its line. Best effort, and said so."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase, translate

from blake3 import blake3

_NAMES = (
    ".env", ".env.*", "*.env", ".netrc", "_netrc", ".pypirc", ".git-credentials", ".htpasswd", ".pgpass", "kaggle.json",
    "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk",
    "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
)  # fmt: skip
_PLAIN_NAMES = (
    ".env.example",
    ".env.sample",
    ".env.template",
    ".env.dist",
    ".env.defaults",
    "example.env",
    "sample.env",
)
_PATHS = (".aws/credentials", ".docker/config.json", ".kube/config", ".ssh/*")

# kind, literals of which one is always there (looked for first: it is 50 times faster), pattern
_CONTENTS: tuple[tuple[str, tuple[bytes, ...], re.Pattern[bytes]], ...] = tuple(
    (kind, marks, re.compile(pattern))
    for kind, marks, pattern in (
        ("private key", (b"PRIVATE KEY",),
         rb"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----[ \t]*(?:\\r|\\n|\r|\n|$)"),
        ("AWS access key", (b"AKIA", b"ASIA"), rb"(?<![A-Za-z0-9])A(?:KIA|SIA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
        ("AWS secret key", (b"ecret",), rb"(?i)aws_?secret_?(?:access_?)?key[\"']?\s{0,3}[:=]\s{0,3}[\"']?[A-Za-z0-9/+=]{40}(?![A-Za-z0-9/+=])"),
        ("GitHub token", (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_"),
         rb"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})"),
        ("GitLab token", (b"glpat-",), rb"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{20,}"),
        ("Hugging Face token", (b"hf_",), rb"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{34,}"),
        ("API key", (b"sk-",),
         rb"(?<![A-Za-z0-9])sk-(?:[A-Za-z0-9]{32,}|(?:proj|ant|svcacct)-[A-Za-z0-9_-]{32,})"),
        ("Google API key", (b"AIza",), rb"(?<![A-Za-z0-9])AIza[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])"),
        ("Slack token", (b"xox",), rb"(?<![A-Za-z0-9])xox[abeprs]-[A-Za-z0-9-]{20,}"),
        ("package index token", (b"pypi-", b"npm_"), rb"(?<![A-Za-z0-9])(?:pypi-AgE[A-Za-z0-9_-]{50,}|npm_[A-Za-z0-9]{36})"),
        ("cloud access key", (b"LTAI", b"AKID"), rb"(?<![A-Za-z0-9])(?:LTAI[A-Za-z0-9]{16,20}|AKID[A-Za-z0-9]{32})(?![A-Za-z0-9])"),
        ("experiment tracker key", (b"WANDB_API_KEY", b"wandb_api_key"),
         rb"(?i)wandb_api_key[\"']?\s{0,3}[:=]\s{0,3}[\"']?[0-9a-f]{40}(?![0-9a-f])"),
        ("Trackbed token", (b"tbp_", b"tba_", b"tbs_"), rb"(?<![A-Za-z0-9])tb[aps]_[0-9a-hjkmnp-tv-z]{40}(?![0-9a-z])"),
    )
)  # fmt: skip
_ANY_MARK = re.compile(b"|".join(re.escape(mark) for _, marks, _ in _CONTENTS for mark in marks))
_ANY_NAME = re.compile("|".join(translate(name) for name in (*_NAMES, *(f"*{path}" for path in _PATHS))))
_PLACEHOLDER = re.compile(rb"(?i)dummy|placeholder|your[_-]|x{8}|\*{8}")


# Changes with the rules: what was found clean by others is searched again.
RULES = blake3(repr((_NAMES, _PLAIN_NAMES, _PATHS, _CONTENTS, _PLACEHOLDER)).encode()).hexdigest()


def secret_name(path: str) -> str:
    """Return the pattern that the path of a key or password file matches; empty for others."""
    name = path.rpartition("/")[2]
    if not _ANY_NAME.match(name) and not _ANY_NAME.match(path):
        return ""
    if name.lower() in _PLAIN_NAMES:
        return ""
    found = next((pattern for pattern in _NAMES if fnmatchcase(name, pattern)), "")
    return found or next((p for p in _PATHS if fnmatchcase(path, p) or fnmatchcase(path, f"*/{p}")), "")


def secrets_in(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield line (from 1) and kind of what looks like a secret. Placeholders are let through."""
    if not _ANY_MARK.search(data):
        return
    for kind, marks, pattern in _CONTENTS:
        if any(mark in data for mark in marks):
            for found in pattern.finditer(data):
                if not _PLACEHOLDER.search(found.group()):
                    yield data.count(b"\n", 0, found.start()) + 1, kind
