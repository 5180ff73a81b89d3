"""For tests of labelling: a folder with cases in it, and what is asked in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from labelling import Desk


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.close()
