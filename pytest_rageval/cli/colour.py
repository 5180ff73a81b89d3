"""Colour of what the command prints: on a terminal, unless NO_COLOR is set; elsewhere only where FORCE_COLOR is."""

from __future__ import annotations

import os
import sys


def wants_colour() -> bool:
    """Empty variables count as unset; NO_COLOR is the stronger one."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()
