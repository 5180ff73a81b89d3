"""Which key of a line gives which part of a case? The keys that every spelling shares, and how parts come together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pytest_rageval.cases import shapes
from pytest_rageval.cases.problems import Findings, Path, spelled
from pytest_rageval.cases.shapes import Shape
from pytest_rageval.model import Json


class Field(NamedTuple):
    """One key of a case file. `part` names the field of EvalCase, or of Gold where `is_gold`, that it gives."""

    part: str
    shape: Shape
    about: str
    is_gold: bool = False


COMMON: Mapping[str, Field] = {
    "id": Field("id", shapes.NAME, "Unique in its file; the last part of the test's name. Absent: a hash of the line."),
    "question": Field("question", shapes.NAME, "What the system is asked."),
    "answerable": Field(
        "answerable", shapes.FLAG, "Does the corpus hold an answer? false: the system should abstain. Default: true."
    ),
    "category": Field(
        "category",
        shapes.LABEL,
        "factual, reasoning, multi_hop, recency/conflict, general, adversarial, retrieval, synthesis, specificity, "
        "negative, or any text.",
    ),
    "difficulty": Field("difficulty", shapes.LABEL, "easy, medium, hard, or any text."),
    "domain": Field(
        "domain", shapes.LABEL, "What the question is about, e.g. market, brand, product, metric, general."
    ),
    "tags": Field("tags", shapes.NAMES, "Free labels, for selecting and for breakdowns."),
    "vaults": Field("vaults", shapes.TEXTS, "The vaults in which the question is asked."),
    "folders": Field("folders", shapes.TEXTS, "The folders in which the question is asked."),
    "requires_kg": Field(
        "requires_kg",
        shapes.FLAG,
        "Does the question need the knowledge graph? Default: true in the layers spelling, else false.",
    ),
    "history": Field("history", shapes.TURNS, "Earlier turns of the conversation, oldest first."),
    "contexts": Field("contexts", shapes.TEXTS, "Contexts given with the case, judged where the target returns none."),
    "metadata": Field(
        "metadata",
        shapes.FREE,
        "Anything else: kept, never interpreted, but for requires_kg, domain and difficulty, which belong to the case.",
    ),
}


class Draft:
    """One case in the making: the parts that the keys of a record gave so far, and where each came from.

    contested  parts that a second key gave differently: the part, the path of that key, what it says
    broken     parts that a key gave and that could not be read: rules that need them have nothing to say
    """

    __slots__ = ("broken", "case", "contested", "findings", "gold", "origins")

    def __init__(self) -> None:
        self.case: dict[str, Any] = {}
        self.gold: dict[str, Any] = {}
        self.origins: dict[str, Path] = {}
        self.contested: list[tuple[str, Path, Any]] = []
        self.broken: set[str] = set()
        self.findings = Findings()

    def take(
        self, record: Mapping[str, Json], fields: Mapping[str, Field], above: Path, elsewhere: Iterable[str] = ()
    ) -> list[str]:
        """Read all keys of an object that stands at `above`; the ones that are there and not null, in their order.

        `elsewhere` are names worth suggesting for an unknown key beside those of `fields`.
        """
        origins, given = self.origins, []
        for key, value in record.items():
            field = fields.get(key)
            if field is None:
                self.findings.unknown((*above, key), {*fields, *elsewhere}, "" if above else _remedy(key))
                continue
            if value is None:
                continue
            given.append(key)
            name, shape, _, is_gold = field
            part = shape.read(value)
            if type(part) is Findings:
                self.findings.include((*above, key), part)
                self.broken.add(name)
                continue
            if part is None or (not part and name in EMPTY_IS_ABSENT):
                continue
            into = self.gold if is_gold else self.case
            if name in origins and into[name] != part:
                self.contested.append((name, (*above, key), part))
                continue
            into[name] = part
            origins[name] = (*above, key)
        return given

    def agree(self) -> None:
        """Two keys may say the same of one part, not different things; but one answer may be repeated from a list."""
        for name, path, part in self.contested:
            if name == "answers":
                first, some, all_of_them = self.origins[name], *sorted((part, self.gold[name]), key=len)
                if len(some) == 1 and some[0] in all_of_them:
                    self.gold[name] = all_of_them
                    continue
            else:
                first = self.origins[name]
            self.findings.add(path, f"differs from {spelled(first)}, which says the same thing; keep one")


def _remedy(key: str) -> str:
    if key == "source":
        return "it is filled in while the file is read; leave it out"
    return "put what is your own into 'metadata'"


EMPTY_IS_ABSENT = frozenset(
    {"answers", "supports", "support_groups", "key_facts", "irrelevant_supports", "irrelevant_ids", "relevance"}
)
"""Gold parts of which an empty list says *unlabelled*, not *nothing is expected*. `chunk_ids` has a rule of its own."""
