"""How many rounds tests of chance take: few in everyday runs, all of them under `make torture`."""

from __future__ import annotations

import os

IS_THOROUGH = os.environ.get("THOROUGH") == "1"


def rounds(thorough: int, usual: int) -> int:
    """The number for this session."""
    return thorough if IS_THOROUGH else usual
