"""Documents of the tree of a run."""

import msgspec


class Document(msgspec.Struct, kw_only=True, omit_defaults=True):
    path: str
    size_bytes: int = 0


class DocumentCommand(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A block that is marked to be run by `trackbed docs check`; `line` is that of its fence."""

    line: int
    text: str


class DocumentView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The text of a document as it was captured. It is a stranger's text: a page shows it without scripts and raw HTML."""

    path: str
    text: str = ""
    size_bytes: int = 0
    cut_bytes: int = 0  # of the end that was left out
    commands: list[DocumentCommand] = []
