"""Check the prose of the pages: words to avoid, the first line, and the length of pages and of sentences.

`python docs/check_words.py [--check] [--long N] [PAGE.md …]` checks all pages if none is named. With `--check` it ends
with 1 if there is anything but long sentences: these are for a person to read again.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent
GENERATED = {
    "api.md",
    "assertion-types.md",
    "commands.md",
    "fields.md",
    "fixtures.md",
    "metrics.md",
    "options.md",
    "shipped-rubrics.md",
}
"""Pages that a program writes."""
LONGEST = 25
"""Words of a sentence that is read in one breath."""
MOST_WORDS = {"Start": 700, "How to": 600, "Reference": 1600, "Understand": 1000, "Troubleshooting": 900}
"""Words of a page by its kind, which is its part of the navigation; bars of tables are not words."""
FREE = {
    "index.md",
    "compared.md",
    "benchmarks.md",
    "appendix.md",
    "reliability-figures.md",
    "glossary.md",
    "llms.txt",
    "SKILL.md",
    "README.md",
}
"""Pages of a form of their own: without a first line that names the task, or without a limit."""
FIRST_LINE = re.compile(r"(?:After|With) this (?:page|tutorial)\b|This page\b")

PATTERNS = {
    r"\b(?:is|are|be|was) said\b|\bsays so\b|\bsay so\b": "name who reports it, and where",
    r"\b[Ww]hoever\b|\b[Nn]obody\b|\b[Ss]omebody\b": "name the actor",
    r"\banew\b": "again",
    r"\b[Ww]hat (?:came|comes|stands|stood|goes)\b": "name the thing: the answer, the retrieved chunks",
    r"\b(?:stands?|stood) (?:in|at|beside|below|above|on|there|for|still)\b": "is, has, contains",
    r"\b[Ww]here there (?:is|are) (?:no|none)\b|\bwhere nothing\b": "without, if no",
    r"\bbeside\b": "next to, as well as",
    r"\bof which\b|\bof whom\b": "turn the clause round",
    r"\ball that\b": "everything that, or name it",
    r"\bspelling\b|\bspelt\b": "format, form",
    r"\basked ahead\b|\bahead of need\b": "prefetched",
    r"\bthe page of (?:a|the) run\b": "the HTML report",
    r"\b(?:is|are) there already\b": "exists",
    r"\bin force\b": "applies",
    r"\bSo (?:is|are|does|do|did|has)\b": "say it as its own sentence, with its subject",
    r", which (?:is|says|means)\b": "two sentences",
    r"(?:^|\. )Of (?:a|an|the|all|such)\b": "subject first",
    r"(?:^|\. )(?:Where|Wherever) (?![^.?]*\?)": "condition after the subject: if",
    r"\bbut for\b": "except",
    r"\bas ever\b": "as usual",
    r"\bthe one that\b": "repeat the noun",
    r"\btold by\b|\btold from\b": "detected from",
    r"\ball else\b|\ball the same\b": "everything else; still",
}

_BLOCK = re.compile(r"^[ ]*```.*?^[ ]*```", re.MULTILINE | re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+")


class Place(NamedTuple):
    page: str
    line: int
    words: str
    remedy: str
    is_sentence: bool = False
    """A long sentence, which may be right."""


@cache
def kinds() -> Mapping[str, str]:
    """Return the part of the navigation of each page."""
    site = tomllib.loads((DOCS.parent / "zensical.toml").read_text(encoding="utf-8"))
    return {page: part for entry in site["project"]["nav"] for part, below in entry.items() for page in _pages(below)}


def _pages(below: str | list[Mapping[str, object]]) -> Iterator[str]:
    if isinstance(below, str):
        yield below
        return
    for entry in below:
        for inner in entry.values():
            yield from _pages(inner)  # type: ignore[arg-type]


def prose(text: str) -> str:
    """Blank code blocks and what stands in code spans and link targets; keep the lines where they are."""
    text = _BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"`[^`\n]*`", "`x`", text)


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of paragraphs, items of lists and cells of tables."""
    start = 0
    lines: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        begins_new = line.lstrip().startswith(("|", "#", "- ", "* ", ">")) or re.match(r"\s*\d+\. ", line)
        if lines and (begins_new or not line.strip()):
            yield start, " ".join(lines)
            lines = []
        if not line.strip() or set(line) <= set("|-: "):
            continue
        if line.startswith("|"):
            for cell in line.strip("|").split("|"):
                yield number, cell.strip()
            continue
        if not lines:
            start = number
        lines.append(line.strip())


def word_count(text: str) -> int:
    """Return the number of words that have a letter or a digit."""
    return sum(1 for word in text.split() if re.search(r"\w", word))


def sentences(paragraph: str) -> list[str]:
    return [sentence for sentence in _SENTENCE_END.split(paragraph) if sentence]


def places(page: Path, longest: int = LONGEST) -> Iterator[Place]:
    """Yield what a person should read again in a page."""
    written = page.read_text(encoding="utf-8")
    yield from _page_places(page.name, written)
    text = prose(written)
    for number, paragraph in paragraphs(text):
        for pattern, remedy in PATTERNS.items():
            for found in re.finditer(pattern, paragraph):
                yield Place(page.name, number, found[0].strip(), remedy)
        for sentence in sentences(paragraph):
            count = word_count(sentence)
            if count > longest:
                yield Place(page.name, number, f"{sentence[:60]}…", f"{count} words in a sentence", is_sentence=True)


def _page_places(name: str, written: str) -> Iterator[Place]:
    """Yield what is wrong with a page as a whole."""
    if name in FREE:
        return
    first = re.search(r"^# .+\n+(.+)", written, re.MULTILINE)
    if first is not None and not FIRST_LINE.match(first[1]):
        yield Place(name, 3, first[1][:60], "say first what the reader can do after this page")
    most = MOST_WORDS[kinds()[name]]
    count = word_count(written)
    if count > most:
        yield Place(name, 1, f"{count} words", f"at most {most}: one task a page, and move what another page has")


def written_pages() -> list[Path]:
    """Return the pages that people write."""
    return [path for path in sorted(DOCS.glob("*.md")) if path.name not in GENERATED]


def main() -> int:
    parser = argparse.ArgumentParser(description="List places in the pages that read hard.")
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--long", type=int, default=LONGEST, metavar="N", help="list sentences of more than N words")
    parser.add_argument("--check", action="store_true", help="print places only, and end with 1 if there is one")
    arguments = parser.parse_args()
    pages = arguments.pages or written_pages()
    every = [place for page in pages for place in places(page, arguments.long)]
    shown = [place for place in every if not (arguments.check and place.is_sentence)]
    for place in shown:
        print(f"{place.page}:{place.line}: {place.words!r}: {place.remedy}")
    words = sum(word_count(page.read_text(encoding="utf-8")) for page in pages)
    print(f"{len(pages)} pages, {words:,} words, {len(shown)} places")
    return 1 if arguments.check and shown else 0


if __name__ == "__main__":
    sys.exit(main())
