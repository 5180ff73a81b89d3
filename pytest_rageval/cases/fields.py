"""Which key of a line gives which part of a case? The keys that every spelling shares, and how parts come together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from typing import Any, NamedTuple

from pytest_rageval.cases import shapes
from pytest_rageval.cases.shapes import Shape
from pytest_rageval.io.messages import Findings, Path, Unsound, bad, spelled
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


class CaseDraft:
    """One case in the making: the parts of EvalCase and of Gold that the keys of a record gave; None equals absent.

    given     the keys of the record that are there and not null
    spelling  the spellings that they combine
    broken    parts that a key gave and that could not be read: rules that need them have nothing to say
    """

    __slots__ = ("case", "given", "gold", "spelling")

    broken: Collection[str] = ()

    def __init__(self, given: Set[str] = frozenset(), spelling: tuple[str, ...] = ()) -> None:
        self.case: dict[str, Any] = {}
        self.gold: dict[str, Any] = {}
        self.given = given
        self.spelling = spelling

    def blame(self, part: str, message: str, inner: Path = ()) -> None:
        """Say that a rule is broken by what stands at `inner` in a part."""
        raise bad(f"{spelled((part, *inner))} {message}")


class CarefulDraft(CaseDraft):
    """A draft that knows where its parts came from, and collects all that is wrong with them."""

    __slots__ = ("_contested", "_origins", "broken", "findings")

    def __init__(self) -> None:
        super().__init__()
        self.broken: set[str] = set()
        self.findings = Findings()
        self._origins: dict[str, Path] = {}
        self._contested: list[tuple[str, Path]] = []

    def blame(self, part: str, message: str, inner: Path = ()) -> None:
        """Note it, at the key that gave the part."""
        self.findings.add((*self._origins[part], *inner), message)

    def take(
        self, record: Mapping[str, Json], fields: Mapping[str, Field], above: Path, elsewhere: Iterable[str] = ()
    ) -> Set[str]:
        """Read all keys of an object that stands at `above`; the ones that are known and not null.

        `elsewhere` are names worth suggesting for an unknown key beside those of `fields`.
        """
        for key, value in record.items():
            field = fields.get(key)
            if field is None:
                self.findings.unknown((*above, key), {*fields, *elsewhere}, "" if above else _remedy(key))
            elif value is not None:
                self._take_part(field, value, (*above, key))
        return {key for key, value in record.items() if value is not None and key in fields}

    def _take_part(self, field: Field, value: Json, path: Path) -> None:
        name, into = field.part, self.gold if field.is_gold else self.case
        try:
            part = field.shape.read(value)
        except Unsound as unsound:
            self.findings.include(path, unsound.findings)
            self.broken.add(name)
            return
        if part is None:
            return
        if name not in into:
            into[name] = part
            self._origins[name] = path
        elif (together := agreed(name, into[name], part)) is not None:
            into[name] = together
        else:
            self._contested.append((name, path))

    def say_contested(self) -> None:
        """Note the parts about which two keys disagree."""
        for name, path in self._contested:
            first = spelled(self._origins[name])
            self.findings.add(path, f"differs from {first}, which says the same thing; keep one")


def agreed(part: str, one: Any, other: Any) -> Any:
    """What two keys say together of one part: the same, or one answer repeated from a list; None if they disagree."""
    if one == other:
        return one
    if part == "answers":
        some, all_of_them = sorted((one, other), key=len)
        if len(some) == 1 and some[0] in all_of_them:
            return all_of_them
    return None


def _remedy(key: str) -> str:
    if key == "source":
        return "it is filled in while the file is read; leave it out"
    return "put what is your own into 'metadata'"
