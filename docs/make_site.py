"""Build the documentation as a site into `site/`, with each page as Markdown too, llms-full.txt and a sample report.

Run by `make docs`. A warning, such as a link that leads nowhere, is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import make_reference

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


def add_sample_report() -> None:
    """Put the report of a run that became worse into the site: the demo with two chunks in place of five."""
    with tempfile.TemporaryDirectory() as place:
        for run, options in (("before", ["--rageval-update-baseline"]), ("after", ["--rageval-k", "2"])):
            command = [sys.executable, "-m", "pytest", "evalcases", "-q", "-p", "no:cacheprovider", "--rageval-reports",
                       place, "--rageval-run-id", run, *options]  # fmt: skip
            # Without a repository of git, whose branch would stand in the report. Cases may fail.
            environment = os.environ | {"GIT_DIR": str(Path(place) / "none")}
            subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)
        shutil.copyfile(Path(place) / "runs" / "after" / "report.html", SITE / "sample-report.html")


def main() -> int:
    make_reference.main()
    pages = copy_pages()
    shutil.rmtree(SITE, ignore_errors=True)
    zensical = Path(sys.executable).with_name("zensical")
    built = subprocess.run([zensical, "build", "--clean", "--strict"], cwd=ROOT)
    if built.returncode == 0:
        add_markdown(pages)
        add_sample_report()
        print(f"site: {SITE.relative_to(ROOT)}/index.html")
    return built.returncode


if __name__ == "__main__":
    sys.exit(main())
