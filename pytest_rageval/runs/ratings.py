"""Thumbs and notes that people gave to the answers of a run, in a file of the run's folder."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json, write_json

RATINGS = "ratings.json"
"""Nothing that runs or re-scores cases writes this file: ratings outlive both."""
LONGEST_NOTE = 2_000
Thumb = Literal["up", "down"]
THUMBS = ("up", "down")
_WRITING = threading.Lock()
"""Two requests of one server would each write what they have read."""


class Rating(NamedTuple):
    """What a person said of one answer; `answer` is a hash of its text, which tells a later answer from it."""

    thumb: Thumb | None = None
    note: str = ""
    trial: int = 0
    answer: str = ""

    @property
    def is_blank(self) -> bool:
        return self.thumb is None and not self.note

    def is_of(self, record: Mapping[str, Any]) -> bool:
        """Return True if the record holds the answer that was rated."""
        return bool(record["trial"] == self.trial and answer_hash(record.get("answer")) == self.answer)


def answer_hash(answer: str | None) -> str:
    return hashlib.sha256((answer or "").encode("utf-8", "surrogatepass")).hexdigest()[:16]


def read_ratings(folder: Path) -> dict[str, Rating]:
    """Return the ratings of a run by case key, none without the file; raise SettingsError if it cannot be read."""
    path = folder / RATINGS
    if not path.exists():
        return {}
    written = read_json(path, "the thumbs and notes of a run").get("ratings")
    if not isinstance(written, dict) or not all(map(_is_rating, written.values())):
        raise SettingsError(f"{path}: 'ratings' is not what was written; was the file changed? Mend or delete it")
    return {key: Rating(**fields) for key, fields in written.items()}


def _is_rating(fields: object) -> bool:
    if not isinstance(fields, dict) or not {*fields} <= {*Rating._fields}:
        return False
    if fields.get("thumb") not in (None, *THUMBS) or type(fields.get("trial", 0)) is not int:
        return False
    return all(isinstance(fields.get(name, ""), str) for name in ("note", "answer"))


def rate(folder: Path, key: str, rating: Rating) -> None:
    """Store the rating of a case in one step, or take it away if it is blank."""
    with _WRITING:
        ratings = read_ratings(folder)
        if rating.is_blank:
            ratings.pop(key, None)
        else:
            ratings[key] = rating
        write_ratings(folder, ratings)


def write_ratings(folder: Path, ratings: Mapping[str, Rating]) -> None:
    """Write all ratings of a run in one step."""
    written = {key: rating._asdict() for key, rating in ratings.items()}
    write_json(folder / RATINGS, {"schema": 1, "ratings": written})


def with_rating(record: dict[str, Any], ratings: Mapping[str, Rating]) -> dict[str, Any]:
    """Return the record with `thumb` and `note` if its answer was rated."""
    rating = ratings.get(record["case_key"])
    # The thumb was for another answer: a run can be resumed, or its case asked again.
    if rating is None or not rating.is_of(record):
        return record
    return record | {"thumb": rating.thumb, "note": rating.note or None}
