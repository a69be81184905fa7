"""What a training process holds: `with trackbed.init(...) as run`. Nothing of it waits for a server or raises into training.

Inside a job it joins its run and writes below the control folder; outside it makes a folder of its own, and a sender (a
process apart) makes the run and ships. Asking for what a job did not give (`run.data("x")`) does raise: that is a mistake
to see before the first step.
"""

import atexit
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from trackbed.base.entropy import new_id
from trackbed.base.errors import NotFound
from trackbed.client import media, outside
from trackbed.client.config import Login, find
from trackbed.client.ending import ending, ending_at_exit, note_exit_status
from trackbed.client.entries import Params, Summary, Tags
from trackbed.client.outside import Begin, OutsideFolder
from trackbed.client.parts import all_in, checkpoint_entry
from trackbed.client.phases import Phase, Phases
from trackbed.client.pulse import Pulse
from trackbed.client.recorder import Problems, Recorder, now_us, say
from trackbed.client.spool import Writer
from trackbed.client.stopping import Saving, Stopping
from trackbed.client.trial import STEP_KEY, trial_of
from trackbed.formats import spool as frames

_open: "list[Run]" = []


def init(
    *,
    project: str = "",
    name: str = "",
    tags: Sequence[str] = (),
    params: Mapping[str, Any] | None = None,
    offline: bool = False,
) -> "Run":
    """Return the run that this process logs to.

    In a job it is the job's own (project and name are the job's, whatever is said here; every call returns the same
    object). Outside it is a new one, in state running at once; without a server it is kept on this machine until
    `trackbed sync`.
    """
    joined = _joined_before()
    if joined is None:
        run_id, control = os.environ.get("TRACKBED_RUN", ""), os.environ.get("TRACKBED_CONTROL", "")
        joined = _join(run_id, Path(control)) if run_id and control else _begin(project, name, tags, params, offline)
    if joined.in_job:
        joined.tags.add(*tags)
        joined.params.update(params or {})
    return joined


def _joined_before() -> "Run | None":
    return next((run for run in _open if run.in_job and not run.forked), None)


def _join(run_id: str, control: Path) -> "Run":
    rank = _number("RANK", 0)
    problems = Problems()
    try:
        writer = Writer(
            control / "spool", run=run_id, attempt=_number("TRACKBED_ATTEMPT", 0),
            incarnation=_number("TRACKBED_INCARNATION", 0), rank=rank,
        )  # fmt: skip
    except OSError as broken:
        problems.report("spool_unwritable", path=control / "spool", error=repr(broken))
        writer = None
    output = Path(os.environ.get("TRACKBED_OUTPUT", "output"))
    return Run(run_id, Recorder(writer, problems), problems, rank=rank, output=output, control=control)


def _begin(project: str, name: str, tags: Sequence[str], params: Mapping[str, Any] | None, offline: bool) -> "Run":
    problems = Problems()
    key = new_id("out")
    begin = Begin(
        key=key, project=project or os.environ.get("TRACKBED_PROJECT", ""), name=name, tags=[str(tag) for tag in tags],
        started_us=now_us(), pid=os.getpid(),
    )  # fmt: skip
    writer, folder = None, None
    for root in (outside.spool_home(), Path(tempfile.gettempdir()) / "trackbed-spool"):
        try:
            folder = OutsideFolder(root / key)
            folder.output.mkdir(parents=True)
            folder.write_begin(begin)
            writer = Writer(folder.path)
            break
        except OSError as broken:
            problems.report("spool_unwritable", path=root, error=repr(broken))
    run = Run(key, Recorder(writer, problems), problems, rank=_number("RANK", 0), output=None, folder=folder)
    run.params.update(params or {})
    login = None if offline else find()
    if writer is not None and folder is not None:
        if login is None:
            run.tell("run_kept" if offline else "offline_no_server", folder=folder.path)
        else:
            run.attach(_start_sender(folder, login), login.url)
    return run


def _start_sender(folder: OutsideFolder, login: Login) -> "subprocess.Popen[bytes] | None":
    log = os.open(folder.path / "sender.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "trackbed.client.sender", str(folder.path)],
            env={**os.environ, "TRACKBED_URL": login.url, "TRACKBED_TOKEN": login.token}, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    except OSError as broken:
        say("sender_not_started", error=repr(broken), folder=folder.path)
        return None
    finally:
        os.close(log)


class Run:
    """A run as its own process sees it. Logging takes microseconds, from any thread and from signal handlers."""

    def __init__(
        self,
        run_id: str,
        recorder: Recorder,
        problems: Problems,
        *,
        rank: int,
        output: Path | None,
        control: Path | None = None,
        folder: OutsideFolder | None = None,
    ) -> None:
        self._id, self._recorder, self._problems = run_id, recorder, problems
        self._control, self._folder = control, folder
        self.rank, self.world = rank, _number("WORLD_SIZE", 1)
        self._output = output
        self._next_step = 0
        self._saved: dict[str, Path] = {}  # name in the output → what was copied there
        self._phases = Phases()
        if control is not None:
            pulse = Pulse(control, rank)
            recorder.idle = lambda: pulse.beat(self._next_step - 1, self._phases.current)
        self._stopping = Stopping(control, rank) if control is not None else None
        self._saving: Saving | None = None
        self._trial = trial_of() if control is not None else None
        self._sender: subprocess.Popen[bytes] | None = None
        self._server = ""
        self._closed = False
        self._told = threading.Lock()  # taken once where the run is has been said; no signal handler waits for it
        self.params = Params(recorder, _given_params())
        self.summary = Summary(recorder)
        self.tags = Tags(recorder)
        _open.append(self)
        atexit.register(self._at_exit)
        if control is None:
            note_exit_status()

    # What it is

    @property
    def id(self) -> str:
        """The run's id; outside a job the local key, until the server has answered."""
        known = self._folder.known if self._folder is not None else None
        return known.run_id if known is not None else self._id

    @property
    def ref(self) -> str:
        """`demo#17`, or the id where the server has not answered yet."""
        known = self._folder.known if self._folder is not None else None
        return (known.ref if known is not None else os.environ.get("TRACKBED_RUN_REF", "")) or self.id

    @property
    def in_job(self) -> bool:
        return self._control is not None

    @property
    def is_trial(self) -> bool:
        """Whether this is a trial (`submit --trial`): a few steps on one card with a part of the data."""
        return self._trial is not None

    @property
    def forked(self) -> bool:
        return self._recorder.forked

    @property
    def seed(self) -> int:
        return _number("TRACKBED_SEED", 0)

    @property
    def problems(self) -> dict[str, int]:
        """What could not be recorded: code → count."""
        return dict(self._problems.counts)

    # What it says

    def log(self, values: Mapping[str, Any], step: int | None = None) -> None:
        """Log named numbers at a step (default: one after the last). Copies the dict; tensors are read later.

        What is no number is left out, counted in `problems` and reported once; nothing is raised.
        """
        try:
            at = self._next_step if step is None else step.__index__()
            if not -(2**63) <= at < 2**63:
                raise OverflowError(at)
            self._next_step = at + 1
            if self._phases.used:
                values = {**self._phases.take(at), **values}
            self._recorder.points(values, at, now_us())
        except Exception as broken:
            self._problems.report("log_refused", step=repr(step), error=repr(broken))

    def define_metric(
        self,
        name: str,
        *,
        goal: str = "",
        unit: str = "",
        tags: Sequence[str] = (),
        deterministic: bool = False,
        watch: bool | Mapping[str, Any] | None = None,
    ) -> None:
        """Say what a metric means. `deterministic`: a reproduction must give the same bits.

        `watch` says whether its curve is judged while it grows: by default that of a metric with a goal or of a loss.
        A document sets single rules, as in `{"spike": 15, "plateau": False}` (docs/explanation/noticed.md).
        """
        said = {"goal": goal, "unit": unit, "tags": list(tags), "deterministic": deterministic}
        document: dict[str, Any] = {"key": str(name), **{key: value for key, value in said.items() if value}}
        if watch is not None:
            document["watch"] = watch if isinstance(watch, bool) else dict(watch)
        self._recorder.document(frames.DEFINE, document)

    def phase(self, name: str) -> Phase:
        """Say what the program does while the `with` block runs: `data`, `compute`, `communication`, `save`, or any name.

        The next `log` of a new step carries `time/step_s` and `time/<name>_s`, seconds a step. Slow steps are judged by
        them, and a rank that all others wait for in `communication` is named.
        """
        return self._phases.phase(name)

    def progress(self, step: int, steps_total: int = 0, seconds_left: float | None = None) -> None:
        """Say how far the run is; shown beside it, not kept."""
        data = {"step": step, "steps_total": steps_total, "seconds_left": seconds_left}
        self._recorder.document(frames.EVENT, {"kind": "progress", "data": data})

    def log_table(self, name: str, rows: Any, columns: Sequence[str] = (), step: int | None = None) -> None:
        """Keep rows (lists, or dicts) as a table of the output."""
        self._media(media.table, name, step, rows, columns)

    def log_image(self, name: str, image: Any, step: int | None = None) -> None:
        """Keep a picture: a path, encoded bytes, a PIL image, or a height x width (x channels) array."""
        self._media(media.image, name, step, image)

    def log_text(self, name: str, text: str, step: int | None = None) -> None:
        self._media(media.text, name, step, text)

    def log_histogram(self, name: str, values: Any, step: int | None = None, bins: int = 64) -> None:
        """Keep counts of values in `bins` equal bins; non-finite ones are counted apart."""
        self._media(media.histogram, name, step, values, bins)

    def log_sample(
        self,
        inputs: Any,
        outputs: Any,
        *,
        name: str = "sample",
        step: int | None = None,
        mask: Sequence[str] = (),
        **facts: Any,
    ) -> None:
        """Keep what went in and what came out, to look at and to replay (`trackbed samples RUN --replay COMMAND`).

        `mask` names fields of the inputs that stay here: their digest is kept, not their value. `facts` are kept beside,
        as in `why="loss is NaN"`.
        """
        self._media(media.sample, name, step, inputs, outputs, facts, mask, self.rank)

    def save(self, path: str | os.PathLike[str], kind: str = "other", *, name: str = "") -> None:
        """Keep a file as an output; one that lies elsewhere is copied into the output folder, as `name` or its own name.

        Another file of the same name gets its folder in front: `a/x.txt` and `b/x.txt` become `x.txt` and `b/x.txt`. The
        same file saved again replaces what was kept of it.
        """
        try:
            source = Path(path).resolve()
            if source.is_relative_to(self.output.resolve()):
                place = source.relative_to(self.output.resolve())
            else:
                place = media.place_for(source, name, self._saved)
                (self.output / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, self.output / place)
                self._saved[place.as_posix()] = source
            self._recorder.document(frames.FILE, {"path": place.as_posix(), "kind": kind})
        except Exception as broken:
            self._problems.report("file_not_saved", path=str(path), error=repr(broken))

    def _media(self, make: Any, name: str, step: int | None, *given: Any) -> None:
        try:
            made = make(str(name), self._next_step if step is None else step.__index__(), *given)
            target = self.output / made.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(made.data)
            self._recorder.document(frames.FILE, {"path": made.path, "kind": made.kind})
        except Exception as broken:
            self._problems.report("media_not_kept", name=repr(name), error=repr(broken))

    # What it was given

    @property
    def output(self) -> Path:
        """The folder whose files are archived and typed at the end."""
        if self._output is None:
            self._output = (
                self._folder.output if self._folder is not None else Path(tempfile.mkdtemp(prefix="trackbed-"))
            )
        return self._output

    @property
    def checkpoints(self) -> Path:
        """Where this attempt saves; outside a job, a folder of the output."""
        given = os.environ.get("TRACKBED_CHECKPOINTS", "") if self.in_job else ""
        path = Path(given) if given else self.output / "checkpoints"
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def scratch(self) -> Path:
        """Node-local space that nobody keeps."""
        return Path(os.environ.get("TRACKBED_SCRATCH") or tempfile.gettempdir())

    @property
    def from_(self) -> Path | None:
        """What `from:` of the spec names, as a folder."""
        given = os.environ.get("TRACKBED_FROM", "")
        return Path(given) if given else None

    def data(self, name: str) -> Path:
        """Return the folder or file of an input, read-only.

        Raises:
            NotFound: `data_not_given`: the job has no such input (outside a job: TRACKBED_DATA_<NAME> is not set).
        """
        variable = "TRACKBED_DATA_" + "".join(c if c.isalnum() else "_" for c in name.upper())
        if variable in os.environ:
            return Path(os.environ[variable])
        given = [key.removeprefix("TRACKBED_DATA_").lower() for key in os.environ if key.startswith("TRACKBED_DATA_")]
        raise NotFound("data_not_given", name=name, variable=variable, given=", ".join(sorted(given)) or "-")

    def latest_checkpoint(self) -> Path | None:
        """Return the checkpoint that this attempt starts from; the same for all ranks and for the whole attempt."""
        given = os.environ.get("TRACKBED_CHECKPOINTS", "")
        latest = Path(given) / "latest" if given else None
        return latest.resolve() if latest is not None and latest.exists() else None

    # What it is asked

    def checkpoint(self, path: str | os.PathLike[str], step: int, *, each: str = "rank") -> None:
        """Say that this rank's part of a checkpoint is complete.

        It exists when every rank of the node said so; with `each="node"` one call a node is enough. A path elsewhere is
        copied into `run.checkpoints`, which costs time: save there directly.
        """
        try:
            entry = checkpoint_entry(self.checkpoints, Path(path), step)
            ranks = 1 if each == "node" or not self.in_job else _number("LOCAL_WORLD_SIZE", 1)
            if all_in(entry, _number("LOCAL_RANK", 0), ranks):
                entry.with_name(entry.name + ".done").touch()
            self._recorder.document(frames.EVENT, {"kind": "checkpoint", "data": {"name": entry.name, "step": step}})
        except Exception as broken:
            self._problems.report("checkpoint_not_kept", path=str(path), error=repr(broken))

    def should_stop(self, step: int) -> bool:
        """Whether to save and leave after this step: one answer per step for all ranks that ask every step."""
        try:
            if self._trial is not None and self.rank == 0 and self._trial.is_new(step):
                self._recorder.points({STEP_KEY: step}, step, now_us())
            if self._trial is not None and self._trial.is_last(step):
                return True
            return self._stopping is not None and self._stopping.should_stop(step)
        except Exception as broken:
            self._problems.report("stop_unreadable", error=repr(broken))
            return False

    def should_save(self, step: int) -> bool:
        """Whether the run's `checkpoint: {every: …}` asks for a checkpoint after this step; in a trial, its last does too."""
        if self._trial is not None and self._trial.is_last(step):
            return True
        if self._saving is None:
            steps, seconds = os.environ.get("TRACKBED_CHECKPOINT_STEPS"), os.environ.get("TRACKBED_CHECKPOINT_SECONDS")
            self._saving = Saving(
                self._control, self.rank, self.world,
                every_steps=int(steps) if steps else None, every_s=float(seconds) if seconds else None,
            )  # fmt: skip
        return self._saving.should_save(step)

    # Its end

    def flush(self, timeout_s: float = 5.0) -> None:
        """Return when everything logged before is in the spool file."""
        self._recorder.flush(timeout_s=timeout_s)

    def finish(self, status: str = "finished", *, exit_code: int = 0, reason: str = "") -> None:
        """End logging. Outside a job this also ends the run; inside, the supervisor's evidence does."""
        if self._closed or self.forked:
            return
        self._closed = True
        if not self.in_job:
            self._recorder.document(frames.FINISH, {"status": status, "exit_code": exit_code, "reason": reason})
        self._recorder.close()
        self._tell_at_end()
        if self in _open:
            _open.remove(self)
        with contextlib.suppress(Exception):
            atexit.unregister(self._at_exit)

    def wait_sent(self, timeout_s: float = 30.0) -> bool:
        """Wait, after `finish` and outside a job, until the server has everything; False where it has not in that time."""
        if self._sender is None or self._folder is None:
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._sender.wait(timeout_s)
        return self._folder.done

    def attach(self, sender: "subprocess.Popen[bytes] | None", server: str) -> None:
        """Take note of who sends and to where; by `init`."""
        self._sender, self._server = sender, server
        if sender is not None:
            self._recorder.idle = self._look

    def _look(self) -> None:
        """Say once, about a second after the start, where the run is to be seen or that it is kept here for now."""
        assert self._folder is not None
        known, offline = self._folder.known, self._folder.offline
        if known is not None:
            self.tell("run_known", ref=known.ref, url=known.url)
        elif offline:
            self.tell("offline_no_answer", server=self._server, folder=self._folder.path)
        else:
            return
        self._recorder.idle = None

    def _tell_at_end(self) -> None:
        """Say of a run that was over within the second where it went, as far as that is known by now."""
        if self._sender is None or self._folder is None:
            return
        known = self._folder.known
        if known is not None:
            self.tell("run_known", ref=known.ref, url=known.url)
        else:
            self.tell("run_kept", folder=self._folder.path)

    def tell(self, code: str, **params: object) -> None:
        """Say where the run is, once; TRACKBED_QUIET=1 keeps it quiet."""
        if self._told.acquire(blocking=False) and os.environ.get("TRACKBED_QUIET", "") in ("", "0"):
            say(code, **params)

    def __enter__(self) -> "Run":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish(**ending(error))

    def _at_exit(self) -> None:
        self.finish(**ending_at_exit())
        if self._sender is not None:
            self._sender.returncode = 0  # it lives on; the interpreter need not warn

    def __repr__(self) -> str:
        return f"<trackbed run {self.ref}>"


def _given_params() -> dict[str, Any]:
    path = os.environ.get("TRACKBED_PARAMS", "")
    if not path:
        return {}
    return json.loads(Path(path).read_text(encoding="utf-8"))


def _number(variable: str, default: int) -> int:
    try:
        return int(os.environ.get(variable, ""))
    except ValueError:
        return default
