"""Where the domains of a store lie. The first is the store itself; each further one is a whole store of its own below it.

    <store>/…                     the first domain
    <store>/domains/<id>          a mark that there is one (an object of the first domain's place)
    <store>/domain-<id>/…         that domain: its own header, key ring, packs, trees, pointers

Ids are random, so nothing tells whose a domain is. Two domains have secrets of their own and share no id, no cut and no byte.
"""

import secrets
from urllib.parse import urlsplit, urlunsplit

from trackbed.storage.backends.keys import S3Keys
from trackbed.storage.backends.port import Backend
from trackbed.storage.open import open_backend

MARKS = "domains/"


def new_domain_id() -> str:
    return secrets.token_hex(8)


def domain_url(url: str, domain: str) -> str:
    """The URL of a domain of the store at `url`; the empty one is the store itself."""
    if not domain:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/domain-{domain}"))


def mark_domain(place: Backend, domain: str) -> None:
    """Note, before it is made, that a domain is there."""
    place.put(MARKS + domain, b"trackbed domain 1\n")


def domain_ids(place: Backend) -> list[str]:
    return [info.name[len(MARKS) :] for info in place.list(MARKS)]


def domain_urls(url: str, s3: S3Keys | None = None) -> list[str]:
    """The URLs of all domains of a store, the first one first."""
    return [url, *(domain_url(url, domain) for domain in domain_ids(open_backend(url, s3)))]


def further_places(url: str, s3: S3Keys | None = None) -> list[Backend]:
    """The places of all domains but the first."""
    return [open_backend(one, s3) for one in domain_urls(url, s3)[1:]]
