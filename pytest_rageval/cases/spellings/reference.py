"""The reference spelling: a question and the answer to compare with, one row each."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_rageval.cases import shapes
from pytest_rageval.cases.fields import CaseDraft, Field

FIELDS: Mapping[str, Field] = {
    "reference": Field("answers", shapes.ANSWER, "The right answer.", is_gold=True),
    "tag": Field("tag", shapes.LABEL, "One free label, added to the tags."),
}


SETTLED = frozenset({"tag"})


def settle_reference(draft: CaseDraft) -> None:
    """One label joins the tags."""
    if tag := draft.case.pop("tag", None):
        tags = draft.case.get("tags", ())
        draft.case["tags"] = tags if tag in tags else (*tags, tag)
