"""A project to label in the browser: three notes, three cases without labels, two drafts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> [x] \u202e"
NOTES = {
    "price.md": f"# Price\n\n## Cream\n\nThe cream costs 32,000 won.\nIt was dearer before.\n{HOSTILE}\n",
    "old.md": "# Old\n\n## Cream in 2023\n\nThe cream was 28,000 won.\n",
    "brand.md": "# Brand\n\n## Cream and Jeju\n\nThe cream is made on Jeju.\n",
}
FILE = "evalcases/shop.jsonl"


def unlabelled_case(case_id: str, question: str, **fields: Any) -> dict[str, Any]:
    return {"id": case_id, "question": question, **fields}


CASES = [
    unlabelled_case("price", "What does the cream cost?"),
    unlabelled_case("place", "Where is the cream made?", category="factual"),
    unlabelled_case("hair", "Is there a cream for hair?"),
]


def label_project(root: Path) -> Path:
    """Write it; the case file."""
    (root / "notes").mkdir()
    for name, text in NOTES.items():
        (root / "notes" / name).write_text(text, encoding="utf-8")
    (root / "evalcases").mkdir()
    (root / "rageval.toml").write_text('notes = "notes"\n')
    file = root / FILE
    file.write_text("".join(json.dumps(written, ensure_ascii=False) + "\n" for written in CASES))
    drafts = [
        unlabelled_case("draft-1", "Is the cream vegan?", tags=["draft"]),
        unlabelled_case("draft-2", "Who makes it?", tags=["draft"]),
    ]
    (root / "evalcases/shop.drafts.jsonl").write_text("".join(json.dumps(draft) + "\n" for draft in drafts))
    return file
