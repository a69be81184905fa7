"""A store by its URL. The one place that knows the adapters."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from trackbed.base.errors import NotYet
from trackbed.storage.local import LocalStore
from trackbed.storage.store import Store


def open_store(url: str) -> Store:
    """Open, and if it is new make, the store at `file:///path`.

    Raises:
        NotYet: `storage_scheme_unknown`, another kind of address.
        BadInput: the folder is something else, or of another version.
    """
    parts = urlsplit(url)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise NotYet("storage_scheme_unknown", url=url)
    return LocalStore(Path(unquote(parts.path)))
