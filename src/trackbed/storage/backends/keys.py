"""What opens a bucket: from the environment of the server, or from its grant. Never from a URL, which stands on records."""

import os
from dataclasses import dataclass, field


@dataclass(frozen=True)
class S3Keys:
    key_id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)

    @classmethod
    def from_environment(cls) -> "S3Keys | None":
        key_id, secret = os.environ.get("AWS_ACCESS_KEY_ID", ""), os.environ.get("AWS_SECRET_ACCESS_KEY", "")
        return cls(key_id, secret, os.environ.get("AWS_SESSION_TOKEN", "")) if key_id and secret else None
