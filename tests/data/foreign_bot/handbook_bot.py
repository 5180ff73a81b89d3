"""A chatbot of somebody else's: FastAPI, a JSON of its own, word search over the sections of a handbook."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
HANDBOOK = Path(__file__).with_name("notes")
COMMON = {
    "the",
    "a",
    "an",
    "is",
    "of",
    "in",
    "on",
    "to",
    "for",
    "and",
    "how",
    "what",
    "when",
    "which",
    "who",
    "does",
    "do",
}


class Chat(BaseModel):
    message: str
    top: int = 5
    threshold: float = 0.2


def words(text: str) -> set[str]:
    return {word.rstrip("s") for word in {*re.findall(r"\w+", text.lower())} - COMMON}


def sections():
    for path in sorted(HANDBOOK.rglob("*.md")):
        title, *parts = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for part in parts:
            heading, _, body = part.partition("\n")
            yield path.relative_to(HANDBOOK).as_posix(), [title.strip().lstrip("# "), heading.strip()], body.strip()


@app.post("/chat")
def chat(request: Chat):
    asked = words(request.message)
    rated = [(len(asked & words(f"{heads[1]} {body}")) / (len(asked) + 1), *rest)
             for rest in sections() for _, heads, body in [rest]]  # fmt: skip
    best = sorted((hit for hit in rated if hit[0] >= request.threshold), key=lambda hit: -hit[0])[: request.top]
    sources = [
        {"file": file, "headings": heads, "passage": body, "relevance": score} for score, file, heads, body in best
    ]
    return {"reply": best[0][3] if best else "I do not know.", "knows": bool(best), "sources": sources}
