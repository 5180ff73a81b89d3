"""Check that a tag names the version of pyproject.toml, and that the changelog has it with a date.

python .ci/released_version.py v0.1.0
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def problem(tag: str) -> str | None:
    """Return why the tag cannot be released; None if it can."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if tag != f"v{version}":
        return f"the tag is {tag}, but pyproject.toml has version {version}; tag v{version}, or change the version"
    heading = re.search(r"^## (\S+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if heading is None or heading[1] != version or not re.fullmatch(r"\d{4}-\d\d-\d\d", heading[2]):
        return f"the topmost heading of CHANGELOG.md is not `## {version} (YYYY-MM-DD)`"
    return None


if __name__ == "__main__":
    sys.exit(problem(sys.argv[1]))
