"""Build the documentation as a site into `site/`, with each page as Markdown too, and llms-full.txt.

Run by `make docs`. A warning, such as a link that leads nowhere, is an error.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
COPY = ROOT / "build" / "docs"
SITE = ROOT / "site"
_EXIT_CODE = re.compile(r"^(```console) exit=\d+$", re.MULTILINE)
"""What the tests read behind the language of an example; the site's Markdown knows no such word."""


def copy_pages() -> list[Path]:
    """Copy the pages, without the examples, which are projects, and without what only tests read; return the copies."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(DOCS, COPY, ignore=shutil.ignore_patterns("*.py", "__pycache__", "examples"))
    pages = sorted(COPY.rglob("*.md"))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        page.write_text(_EXIT_CODE.sub(r"\1", text), encoding="utf-8")
    return pages


def add_markdown(pages: list[Path]) -> None:
    """Put each page beside its HTML, and all of them in one file for language models."""
    for page in pages:
        shutil.copyfile(page, SITE / page.relative_to(COPY))
    every = "\n\n".join(page.read_text(encoding="utf-8") for page in pages)
    (SITE / "llms-full.txt").write_text(every, encoding="utf-8")


def main() -> int:
    pages = copy_pages()
    shutil.rmtree(SITE, ignore_errors=True)
    zensical = Path(sys.executable).with_name("zensical")
    built = subprocess.run([zensical, "build", "--clean", "--strict"], cwd=ROOT)
    if built.returncode == 0:
        add_markdown(pages)
        print(f"site: {SITE.relative_to(ROOT)}/index.html")
    return built.returncode


if __name__ == "__main__":
    sys.exit(main())
