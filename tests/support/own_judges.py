"""A module of judges of somebody's own, in the folder in which a command is called."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


def with_own_judges(folder: Path, judges: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write `my_judges.py`, and make its folder the current one, from which it is imported anew."""
    (folder / "my_judges.py").write_text(judges, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "my_judges", raising=False)
    return folder
