"""The plain face of a labelling session: chunks by number, one command a line. Also the editor of both faces."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from string import ascii_letters

from pytest_rageval.errors import CaseError
from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.marks_view import (
    case_title,
    clean,
    earlier_line,
    expected_line,
    golds_line,
    marks_view,
    question_line,
)
from pytest_rageval.label.pools import Candidate
from pytest_rageval.text import printable

HELP = """\
  1 3        chunks 1 and 3 are golds, or no more      x 4    irrelevant, or no more
  g2 5       gold 5 goes into group 2                  v 3 2-4  lines 2 to 4 of chunk 3 as snippet
  a  u       answerable, unanswerable (clears golds)   show 3 the whole text of chunk 3
  w WORDS    the next chunk that holds them            / TEXT ask another query and add its chunks
  o          the whole question and expected answer
  (nothing)  save, next case        p  case before     t      next unlabelled      s  skip
  z  Z       undo, redo             y  n  drafts: accept, drop    e  edit          q  save and quit"""
SHOWN_LINES = 3
SHOWN_CHARACTERS = 300
PLAIN_CHARACTERS, MOST_CHARACTERS = 480, 100_000
"""Characters of a question or expected answer: six rows of a terminal, and all of them after `o`."""
SESSION_CALLS: Mapping[str, tuple[str, *tuple[object, ...]]] = {
    "save": ("go", 1),
    "a": ("set_answerable",),
    "u": ("ask_to_clear",),
    "p": ("go", -1),
    "t": ("next_unlabelled",),
    "s": ("skip",),
    "z": ("undo",),
    "Z": ("redo",),
    "y": ("decide", "accepted"),
    "n": ("decide", "dropped"),
}
"""The calls of the session by their word."""


class LabelLines:
    """Reads lines and calls the session. A line that names no existing chunk is a CaseError."""

    def __init__(self, session: LabelSession, write: Callable[[str], object]) -> None:
        self.session = session
        self._write = write
        self._verbs: dict[str, Callable[[str], object]] = {
            "": lambda rest: self._each(rest, session.toggle_gold),
            "x": lambda rest: self._each(rest, session.toggle_irrelevant),
            "g": self._group,
            "v": self._snippet,
            "w": self._find,
            "/": self._ask,
            "show": self._show,
            "e": lambda _: edit_draft(session),
            "o": lambda _: self._write_texts(MOST_CHARACTERS),
            "?": lambda _: self._write(HELP),
        }

    def run(self, lines: Iterable[str]) -> None:
        """Execute lines until `q` or their end, and save the labels."""
        self._write(HELP)
        self._show_case()
        for line in lines:
            if line.strip() == "q":
                break
            self._obey(line.strip())
        if not self.session.save():
            self._write(f"! {printable(self.session.message)}")
        self._write(f"{self.session.labelled} of {len(self.session.cases)} in {clean(self.session.store.file_name)}")

    def _obey(self, line: str) -> None:
        session = self.session
        case = session.case
        verb = _verb_of(line)
        if not line or verb in SESSION_CALLS:
            session.do(*SESSION_CALLS[verb or "save"])
        else:
            session.message = ""
            session.asks_to_clear = False
            try:
                self._verbs.get(verb, self._unknown)(line.removeprefix(verb).strip())
            except CaseError as error:
                session.message = str(error)
        if session.message:
            self._write(f"! {printable(session.message)}")
        if session.case is not case:
            self._show_case()
        elif line and verb not in ("?", "w", "/", "show", "o"):
            self._write(self._marked())

    # ── showing ───────────────────────────────────────────────────────────────────────────────────────────────

    def _show_case(self) -> None:
        self.session.source.wait(self.session.source.pool(self.session.case))
        self._write(f"\n{case_title(self.session)}")
        self._write_texts(PLAIN_CHARACTERS)
        self._show_chunks(0)
        self._write(self._marked())

    def _write_texts(self, most: int) -> None:
        """Write what was said before, the question and the expected answer, each cut to so many characters."""
        earlier = earlier_line(self.session)
        if len(earlier) > most:
            self._write(f"(o shows the rest) … {earlier[-most:]}")
        elif earlier:
            self._write(earlier)
        for text in (question_line(self.session), expected_line(self.session)):
            if len(text) > most:
                self._write(f"{text[:most]} … (o shows the rest)")
            elif text:
                self._write(text)

    def _show_chunks(self, first: int) -> None:
        pool = self.session.pool
        for row, candidate in zip(marks_view(self.session).rows[first:], pool.candidates[first:], strict=True):
            sign = f" {row.origin[-1]}" if row.origin[-1:] in ("S", "–") else ""
            place = clean(" > ".join(filter(None, (row.place, candidate.chunk.heading_path))))
            self._write(f"{row.number:>3} ({row.symbol or ' '}){sign} {place}")
            for line in _lines(candidate)[:SHOWN_LINES]:
                self._write(f"        {line[:SHOWN_CHARACTERS]}")
        for problem in pool.problems:
            self._write(f"! {printable(problem)}")

    def _marked(self) -> str:
        session = self.session
        answerable = "answerable · " if session.marks.answerable else ""
        return f" {answerable}{golds_line(session, marks_view(session))}"

    def _show(self, rest: str) -> None:
        for row in self._rows(rest):
            for number, line in enumerate(_lines(self.session.pool.candidates[row]), start=1):
                self._write(f"{number:>5} {line}")

    # ── marking ───────────────────────────────────────────────────────────────────────────────────────────────

    def _rows(self, rest: str) -> list[int]:
        numbers = re.findall(r"\d+", rest)
        candidates = len(self.session.pool.candidates)
        if not numbers or re.sub(r"[\d\s,]", "", rest):
            raise CaseError(f"{rest!r} is no list of chunk numbers, as in: 1 3")
        for number in numbers:
            if not 1 <= int(number) <= candidates:
                raise CaseError(f"there is no chunk {number}; there are {candidates}")
        return [int(number) - 1 for number in numbers]

    def _each(self, rest: str, action: Callable[[], object]) -> None:
        for row in self._rows(rest):
            self.session.row = row
            self.session.range_start = None
            action()

    def _group(self, rest: str) -> None:
        group, _, numbers = rest.partition(" ")
        if not re.fullmatch("[1-9]", group):
            raise CaseError("name a group from 1 to 9 and chunks, as in: g2 5")
        self._each(numbers, lambda: self.session.put_in_group(int(group)))

    def _snippet(self, rest: str) -> None:
        parts = re.fullmatch(r"(\d+)\s+(\d+)(?:-(\d+))?", rest)
        if parts is None:
            raise CaseError("name a chunk and its lines, as in: v 3 2-4")
        (row,) = self._rows(parts[1])
        lines = (self.session.pool.candidates[row].chunk.text or "").split("\n")
        first = int(parts[2])
        last = int(parts[3] or parts[2])
        if not 1 <= first <= last <= len(lines):
            raise CaseError(f"chunk {parts[1]} has lines 1 to {len(lines)}")
        self._each(parts[1], lambda: self.session.add_snippet("\n".join(lines[first - 1 : last])))

    def _find(self, rest: str) -> None:
        if self.session.find(rest):
            row = marks_view(self.session).rows[self.session.row]
            self._write(f"{row.number:>3} {clean(row.place)}")

    def _ask(self, rest: str) -> None:
        if not rest:
            raise CaseError("write what to ask, as in: / price of the cream")
        first = len(self.session.pool.candidates)
        self.session.take_more(self.session.at, self.session.source.wait(self.session.ask_more(rest)))
        self._show_chunks(first)

    def _unknown(self, _rest: str) -> None:
        raise CaseError("no such command; ? shows them")


def _verb_of(line: str) -> str:
    """Return the word or the letter that a line begins with; nothing for a list of chunks."""
    if line.startswith("show"):
        return "show"
    first = line[:1]
    return first if first in f"{ascii_letters}/?" else ""


def _lines(candidate: Candidate) -> list[str]:
    return [printable(line.replace("\t", "    ")) for line in (candidate.chunk.text or "").split("\n")]


# ── drafts ────────────────────────────────────────────────────────────────────────────────────────────────────


def edit_draft(session: LabelSession, suspended: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
    """Edit the draft in $EDITOR and store the result; `suspended` releases the terminal meanwhile."""
    drafts = session.drafts
    if drafts is None:
        session.message = "e is for drafts"
        return
    record = json.loads(drafts.text_of(session.states[session.at]))
    written = json.dumps(record, ensure_ascii=False, indent=1) + "\n"
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    try:
        with suspended(), tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "draft.json")
            file.write_text(written, encoding="utf-8")
            # Commands that come from a pipe are for the session, not for the editor.
            stdin = None if sys.stdin.isatty() else subprocess.DEVNULL
            subprocess.run([*editor, str(file)], check=True, stdin=stdin)  # noqa: S603 because it is the person's own
            edited = file.read_text(encoding="utf-8")
    except (OSError, subprocess.CalledProcessError, UnicodeDecodeError) as error:
        session.message = f"$EDITOR ({shlex.join(editor)}): {error}"
        return
    if edited != written:
        session.edit_draft(" ".join(line.strip() for line in edited.splitlines()))
