"""List places in pages that read hard, by words to avoid and by long sentences, for a person to read again.

`python docs/check_words.py [--long N] [PAGE.md …]` checks all pages if none is named. It always ends with 0.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent
GENERATED = {"metrics.md", "options.md", "commands.md", "fields.md", "api.md"}
"""Pages that a program writes."""
LONGEST = 25
"""Words of a sentence that is read in one breath."""
MOST_WORDS = 600
"""Words of a page about one task."""

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
    r"(?:^|\. )(?:Where|Wherever) ": "condition after the subject: if",
    r"\bbut for\b": "except",
    r"\bas ever\b": "as usual",
}

_BLOCK = re.compile(r"^[ ]*```.*?^[ ]*```", re.MULTILINE | re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+")


class Place(NamedTuple):
    page: str
    line: int
    words: str
    remedy: str


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


def sentences(paragraph: str) -> list[str]:
    return [sentence for sentence in _SENTENCE_END.split(paragraph) if sentence]


def places(page: Path, longest: int = LONGEST) -> Iterator[Place]:
    """Yield what a person should read again in a page."""
    text = prose(page.read_text(encoding="utf-8"))
    for number, paragraph in paragraphs(text):
        for pattern, remedy in PATTERNS.items():
            for found in re.finditer(pattern, paragraph):
                yield Place(page.name, number, found[0].strip(), remedy)
        for sentence in sentences(paragraph):
            count = len(sentence.split())
            if count > longest:
                yield Place(page.name, number, f"{sentence[:60]}…", f"{count} words in a sentence")


def main() -> None:
    parser = argparse.ArgumentParser(description="List places in the pages that read hard.")
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--long", type=int, default=LONGEST, metavar="N", help="list sentences of more than N words")
    arguments = parser.parse_args()
    pages = arguments.pages or [path for path in sorted(DOCS.glob("*.md")) if path.name not in GENERATED]
    total = 0
    for page in pages:
        found = list(places(page, arguments.long))
        total += len(found)
        for place in found:
            print(f"{place.page}:{place.line}: {place.words!r}: {place.remedy}")
        print(f"{page.name}: {len(page.read_text(encoding='utf-8').split())} words, {len(found)} places")
    print(f"{len(pages)} pages, {total} places")


if __name__ == "__main__":
    main()
