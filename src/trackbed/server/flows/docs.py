"""docs: the documents of the tree of a run, from the store."""

import os

from trackbed.base.errors import NotFound
from trackbed.base.ids import Digest, FileDigest
from trackbed.db import ReadTx
from trackbed.domain.scope import Scope
from trackbed.formats.tree import Entry
from trackbed.server.app import App
from trackbed.sources.docs import MOST_BYTES, commands, documents
from trackbed.tracking import runs
from trackbed.wire.docs import Document, DocumentCommand, DocumentView


def tree_of(tx: ReadTx, scope: Scope, ref: str) -> tuple[str, str]:
    """Return the name of a run that may be read, and the digest of its tree."""
    row = runs.resolve(tx, scope, ref)
    return runs.ref_of(row), row.tree_digest


def list_documents(app: App, tree: str) -> list[Document]:
    """Return the documents of a tree, READMEs first. Reads the store; outside of transactions."""
    files = _files(app, tree)
    return [Document(path=path, size_bytes=files[path].size) for path in documents(files)]


def show(app: App, ref: str, tree: str, path: str) -> DocumentView:
    """Return the text of one document; without a path, of the first.

    Raises:
        NotFound: `docs_missing`, `docs_none`.
    """
    files = _files(app, tree)
    known = documents(files)
    if not known:
        raise NotFound("docs_none", ref=ref)
    chosen = path or known[0]
    if chosen not in known:
        raise NotFound("docs_missing", path=path, ref=ref, known=", ".join(known[:20]))
    entry = files[chosen]
    with app.store.open_range(FileDigest(entry.digest), 0, min(entry.size, MOST_BYTES)) as reader:
        text = reader.read().decode("utf-8", "replace")
    found = [DocumentCommand(line=one.line, text=one.text) for one in commands(text)[0]]
    return DocumentView(
        path=chosen, text=text, size_bytes=entry.size, cut_bytes=max(0, entry.size - MOST_BYTES), commands=found
    )


def _files(app: App, tree: str) -> dict[str, Entry]:
    if not tree:
        return {}
    entries = app.store.read_listing(Digest(tree))
    return {os.fsdecode(one.path): one for one in entries if one.kind == "f"}
