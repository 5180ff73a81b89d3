"""The descriptive fields of a case: the table from which reading, filters, breakdowns and every face take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pytest_rageval.model.case import EvalCase


@dataclass(frozen=True, slots=True)
class DescriptiveField:
    """A field of EvalCase with one text that describes the case.

    Its text is neither sent to the system nor scored. So it counts in the hash of the whole case, not in the hash of
    what is asked, and only gates with a condition on it depend on it.

    name          the field of EvalCase, and its key in case files, records, filters and conditions of gates
    about         the description in the JSON Schema of case files
    other_names   names that other tools and languages give to it, separated by spaces
    absent        the value shown for cases without one; '' if they are left out of breakdowns
    in_metadata   whether the layers format has it in `metadata`
    is_prominent  whether the browser's form and table have a place for it
    """

    name: str
    about: str
    other_names: str = ""
    absent: str = ""
    in_metadata: bool = False
    is_prominent: bool = True

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").capitalize()


CATEGORY: Final = "category"
"""The field that also says which kind of case it is: some categories have no answer in the corpus."""
UNCATEGORISED: Final = "uncategorised"
"""The value of a descriptive field that a case leaves out, in conditions of gates."""

DESCRIPTIVE_FIELDS = (
    DescriptiveField(
        CATEGORY,
        "factual, reasoning, multi_hop, recency/conflict, general, adversarial, retrieval, synthesis, specificity, "
        "negative, or any text.",
        other_names="kategorie categorie categoria 분류 카테고리 カテゴリ 分类 分類",
        absent=UNCATEGORISED,
    ),
    DescriptiveField(
        "difficulty",
        "easy, medium, hard, or any text.",
        other_names="schwierigkeit dificultad difficulte 난이도 難易度 难度",
        in_metadata=True,
    ),
    DescriptiveField(
        "domain",
        "What the question is about, e.g. market, brand, product, metric, general.",
        in_metadata=True,
        is_prominent=False,
    ),
)
DESCRIPTIVE_NAMES = tuple(field.name for field in DESCRIPTIVE_FIELDS)
PROMINENT_NAMES = tuple(field.name for field in DESCRIPTIVE_FIELDS if field.is_prominent)
OTHER_DESCRIPTIVE_NAMES = tuple(name for name in DESCRIPTIVE_NAMES if name != CATEGORY)


def descriptions_of(case: EvalCase) -> dict[str, Any]:
    """Return the texts of a case's descriptive fields by name."""
    return {name: getattr(case, name) for name in DESCRIPTIVE_NAMES}


def descriptions_in(record: Mapping[str, str | None]) -> tuple[str | None, ...]:
    """Return the texts of a record's descriptive fields; None for a field that is younger than the record."""
    return tuple([record.get(name) for name in DESCRIPTIVE_NAMES])
