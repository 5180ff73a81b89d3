"""Write requirements/: every dependency in one version with its hashes, for all Pythons and systems at once. Needs uv.

python .ci/lock.py              # after a change of the dependencies in pyproject.toml; keeps what still fits
python .ci/lock.py --upgrade    # the newest releases
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCKS = {"dev": ("dev", "docs"), "web": ("web",)}
"""The extras of each file. `dev` is for tests and checks, `web` for the container."""
FORM = ("--universal", "--python-version", "3.11", "--generate-hashes", "--no-annotate", "--no-header", "--quiet")


def main(options: list[str]) -> None:
    uv = Path(sys.executable).with_name("uv")
    for name, extras in LOCKS.items():
        chosen = [word for extra in extras for word in ("--extra", extra)]
        command = [uv, "pip", "compile", "pyproject.toml", *FORM, *chosen, *options, "-o", f"requirements/{name}.txt"]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(sys.argv[1:])
