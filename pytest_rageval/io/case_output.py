"""The output of user code during a case: kept for that case, or shown line by line.

Standard library only: pytest sessions that may have cases route their streams before anything else is loaded.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from logging import LogRecord
from typing import Any

MOST_CHARACTERS, MOST_RECORDS = 64_000, 1_000
"""Limits of one case: characters of each stream, records of its log."""
CUT = f"…\n(longer than {MOST_CHARACTERS:,} characters)\n"


class Output:
    """The output and log records of one case. Tasks and threads that inherit its context write here too."""

    def __init__(self, clean: Callable[[str], str] | None = None) -> None:
        """`clean`: makes each finished line fit to be shown at once, where nothing is kept."""
        self._clean = clean
        self._texts: dict[str, list[str]] = {}
        self._room = {"stdout": MOST_CHARACTERS, "stderr": MOST_CHARACTERS}
        self.records: list[LogRecord] = []

    def __bool__(self) -> bool:
        return bool(self._texts or self.records)

    def add(self, stream: str, text: str) -> str:
        """Keep text written to a stream; return what to show there now."""
        kept = self._texts.setdefault(stream, [])
        if self._clean is not None:
            lines, end, rest = "".join([*kept, text]).rpartition("\n")
            # An unfinished line waits for its end: half of a secret could not be masked.
            kept[:] = [rest[:MOST_CHARACTERS]]
            return self._clean(lines + end)
        room = self._room[stream]
        if room > 0:
            kept.append(text if len(text) <= room else text[:room] + CUT)
        self._room[stream] = room - len(text)
        return ""

    def log(self, record: LogRecord) -> None:
        if len(self.records) < MOST_RECORDS:
            self.records.append(record)

    def extend(self, other: Output) -> None:
        """Append the output of another one."""
        self.records += other.records
        for stream, text in other.texts():
            self._texts.setdefault(stream, []).append(text)

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield each stream with its text."""
        for stream, parts in sorted(self._texts.items(), reverse=True):
            if text := "".join(parts):
                yield stream, text

    def __enter__(self) -> None:
        """Take what this thread, or task, prints and logs."""
        self._before = OUTPUT.set(self)

    def __exit__(self, *_raised: object) -> None:
        OUTPUT.reset(self._before)


OUTPUT: ContextVar[Output | None] = ContextVar("rageval_output", default=None)
"""The output of the case whose code is running."""


_IS_FOREIGN: ContextVar[bool] = ContextVar("rageval_foreign", default=False)


@contextmanager
def foreign_code() -> Iterator[None]:
    """Treat what this thread prints as output of user code, although no case is under way: a module is imported."""
    before = _IS_FOREIGN.set(True)
    try:
        yield
    finally:
        _IS_FOREIGN.reset(before)


class Routing:
    """The destination of user code of unknown cases: `threads`; without it, threads write to the stream beneath.

    imported  takes what modules print while they are imported, as long as there is no `threads`
    """

    def __init__(self, threads: Output | None = None) -> None:
        self.threads = threads
        self.imported = Output()
        self._owner = threading.get_ident()

    def of_foreign_code(self) -> Output | None:
        """Return the output for the calling thread; None for the thread that routes, unless it runs user code."""
        if _IS_FOREIGN.get():
            return self.imported if self.threads is None else self.threads
        return self.threads if threading.get_ident() != self._owner else None


class Stream:
    """A standard stream that gives each case what its code writes, and the stream beneath all else."""

    def __init__(self, name: str, beneath: Any, routing: Routing | None = None) -> None:
        # One that is routed already is replaced: it would take the cleaned lines of a case for the case's output again.
        self._beneath: Any = beneath._beneath if isinstance(beneath, Stream) else beneath
        self._name = name
        self._routing = routing

    def is_over(self, stream: object) -> bool:
        """Return True if this is the stream beneath."""
        return stream is self._beneath

    def _output(self) -> Output | None:
        output = OUTPUT.get()
        return self._routing.of_foreign_code() if output is None and self._routing is not None else output

    def write(self, text: Any) -> int:
        output = self._output()
        if output is None:
            written: int = self._beneath.write(text)
            return written
        shown = output.add(self._name, text if isinstance(text, str) else bytes(text).decode("utf-8", "replace"))
        if shown:
            self._beneath.write(shown)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def isatty(self) -> bool:
        # No colours and no progress bars in what is kept for a report.
        return self._output() is None and bool(self._beneath.isatty())

    @property
    def buffer(self) -> Any:
        """Return the binary buffer beneath, or this stream while a case is under way."""
        # Bytes written past the text layer are a case's output, too.
        return self._beneath.buffer if self._output() is None else self

    # Everything else that text streams offer is that of the stream beneath. No subclass of `io.TextIOBase`, which
    # closes what it stands for when it is collected.

    @property
    def name(self) -> Any:
        return self._beneath.name

    @property
    def mode(self) -> Any:
        return self._beneath.mode

    @property
    def encoding(self) -> Any:
        return self._beneath.encoding

    @property
    def errors(self) -> Any:
        return self._beneath.errors

    @property
    def newlines(self) -> Any:
        return self._beneath.newlines

    @property
    def line_buffering(self) -> Any:
        return self._beneath.line_buffering

    @property
    def write_through(self) -> Any:
        return self._beneath.write_through

    @property
    def closed(self) -> bool:
        return bool(self._beneath.closed)

    def readable(self) -> bool:
        return bool(self._beneath.readable())

    def writable(self) -> bool:
        return bool(self._beneath.writable())

    def seekable(self) -> bool:
        return bool(self._beneath.seekable())

    def fileno(self) -> int:
        return int(self._beneath.fileno())

    def flush(self) -> None:
        self._beneath.flush()

    def close(self) -> None:
        # User code may close what it prints to, and not what the run is shown on.
        if self._output() is None:
            self._beneath.close()

    def reconfigure(self, **how: Any) -> None:
        self._beneath.reconfigure(**how)


@contextmanager
def routed_streams(routing: Routing | None = None) -> Iterator[None]:
    """Route output to its case; without `routing`, output of no case goes to the streams beneath."""
    out: Any = Stream("stdout", sys.stdout, routing)
    err: Any = Stream("stderr", sys.stderr, routing)
    with redirect_stdout(out), redirect_stderr(err):
        yield
