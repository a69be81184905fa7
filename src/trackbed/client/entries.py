"""Params, summary and tags of a run, as a program holds them; what is set goes on the record."""

from collections.abc import Iterator, MutableMapping
from typing import Any

from trackbed.client.recorder import Recorder
from trackbed.formats import spool as frames


class Params(MutableMapping[str, Any]):
    """Resolved params. What is set here goes on the record; a param that has another value there is refused by the server."""

    def __init__(self, recorder: Recorder, given: dict[str, Any]) -> None:
        self._recorder, self._values = recorder, given

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def update(self, *given: Any, **named: Any) -> None:
        new = dict(*given, **named)
        changed = {
            name: value for name, value in new.items() if name not in self._values or self._values[name] != value
        }
        self._values.update(changed)
        if changed:
            self._recorder.entries(frames.PARAMS, changed)

    def __delitem__(self, name: str) -> None:
        raise TypeError("params of a run are not taken back")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


class Summary(dict[str, Any]):
    """Results to show beside the run; each assignment goes on the record, the last one counts."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __setitem__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def update(self, *given: Any, **named: Any) -> None:
        new = dict(*given, **named)
        super().update(new)
        self._recorder.entries(frames.SUMMARY, new)


class Tags:
    """Tags that this process adds to its run or takes away."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def add(self, *tags: str) -> None:
        if tags:
            self._recorder.document(frames.TAGS, {"add": [str(tag) for tag in tags]}, len(tags))

    def remove(self, *tags: str) -> None:
        if tags:
            self._recorder.document(frames.TAGS, {"remove": [str(tag) for tag in tags]}, len(tags))
