"""A draft in the person's own editor, for both faces of a labelling session."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pytest_rageval.label.label_session import LabelSession


def edit_draft(session: LabelSession, suspended: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
    """Open the draft in $EDITOR, and take what comes back; `suspended` gives the terminal away meanwhile."""
    drafts = session.drafts
    if drafts is None:
        session.message = "e is for drafts"
        return
    record = json.loads(drafts.text_of(session.case, session.marks))
    written = json.dumps(record, ensure_ascii=False, indent=1) + "\n"
    try:
        with suspended():
            edited = _edited(written)
    except (OSError, subprocess.CalledProcessError, UnicodeDecodeError) as error:
        session.message = f"$EDITOR ({shlex.join(_editor())}): {error}"
        return
    if edited != written:
        session.edit_draft(" ".join(line.strip() for line in edited.splitlines()))


def _edited(text: str) -> str:
    """What the editor makes of a text."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "draft.json")
        file.write_text(text, encoding="utf-8")
        # Commands that come from a pipe are for the session, not for the editor.
        stdin = None if sys.stdin.isatty() else subprocess.DEVNULL
        subprocess.run([*_editor(), str(file)], check=True, stdin=stdin)  # noqa: S603 because it is the person's own
        return file.read_text(encoding="utf-8")


def _editor() -> list[str]:
    return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
