"""Foreign rows read into cases: by the expressions of their format, the other members by what their columns mean.

What a system gave becomes a record of an answers file; what has no meaning here goes into `metadata`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import jmespath
from jmespath.exceptions import JMESPathError

from pytest_rageval.cases.answerability import answerable_by, is_negative, says_not_present, truth_of
from pytest_rageval.cases.exchange.asserted_checks import assertions_of_checks, unconverted
from pytest_rageval.cases.exchange.checks import gold_of_checks
from pytest_rageval.cases.exchange.column_values import KEPT, is_gold_name, last_name
from pytest_rageval.cases.exchange.columns import Columns
from pytest_rageval.cases.exchange.exchange import with_extra_parts
from pytest_rageval.cases.exchange.field_readers import READERS
from pytest_rageval.cases.exchange.foreign_rows import (
    LISTED,
    SIMPLE,
    ForeignRow,
    columns_of,
    foreign_row,
    is_within,
    member_at,
    member_named,
    roots_of,
)
from pytest_rageval.cases.exchange.given_values import given_parts, with_empty_retrieval
from pytest_rageval.cases.exchange.gold_objects import (
    gold_places,
    graded_ids,
    have_places,
    joined_gold,
    unread_titles,
    with_pages,
)
from pytest_rageval.cases.exchange.map_hints import map_option
from pytest_rageval.cases.exchange.printed import is_nothing, printed_value
from pytest_rageval.cases.exchange.values import (
    conversation_of,
    texts_of,
    with_headings,
)
from pytest_rageval.cases.names import (
    ALTERNATIVES,
    ANSWER,
    ANSWERABLE,
    CONTEXTS,
    FACTS,
    GRADES,
    HEADINGS,
    IDS,
    OF_SYSTEM,
    PAGES,
    PLACES,
    QUESTION,
    RETRIEVED_IDS,
    RETRIEVED_PATHS,
)
from pytest_rageval.cases.refusal_golds import (
    DECLINING_GOLD,
    GOLD_KEYS,
    golds_decline,
    without_none_words,
    written_golds,
)
from pytest_rageval.errors import CaseError
from pytest_rageval.io.messages import Finding
from pytest_rageval.model import NOTHING, Json


class RowReading:
    """One converted row.

    case, answer  a record of a case file, and one of an answers file without its id
                  (`is_of_system`: names that do not say whose an answer or a context is mean the system's)
    used          the row's names by field
    metadata      what has no meaning here
    kept_at       the paths of the metadata in the row
    unused        promptfoo's checks without a counterpart here, by type
    notes         files that promptfoo names and that were not read, a line each
    questions     what this row says in two ways
    """

    def __init__(
        self,
        row: Mapping[str, Json] | ForeignRow,
        fields: Mapping[str, str] = NOTHING,
        folder: Path = Path(),
        columns: Columns | None = None,
        *,
        is_of_system: bool = False,
    ) -> None:
        self.case: dict[str, Json] = {}
        self.answer: dict[str, Json] = {}
        self.used: dict[str, str] = {}
        self.unused: Counter[str] = Counter()
        self.notes: list[str] = []
        self.metadata: dict[str, Json] = {}
        self.kept_at: dict[str, str] = {}
        self.questions: list[str] = []
        self._names: dict[str, str] = {}
        """The row's names of the case's keys."""
        self._written: dict[str, Json] = {}
        """The values by the row's names, as they were written."""
        self._answerable: Json = None
        self._says_when_answerable = False
        self._folder = folder
        if isinstance(row, ForeignRow):
            taken = row
        else:
            taken = foreign_row(row, folder, may_be_own=not (fields or is_of_system))
        if taken.own is not None:
            self.case = dict(taken.own)
            return
        self._columns = columns or columns_of([taken], fields, is_of_system=is_of_system)
        self._read(taken, fields)

    def _read(self, taken: ForeignRow, fields: Mapping[str, str]) -> None:
        self.notes += taken.notes
        if taken.unread:
            self.metadata["unread"] = dict(taken.unread)
        leaves = dict(taken.leaves)
        self._says_when_answerable = ANSWERABLE in fields
        for field_name, expression in fields.items():
            is_read_as_sign = field_name == ANSWERABLE and self._columns.signs
            if expression and not is_read_as_sign:
                self._take_expression(taken.row, field_name, expression, leaves)
        for path, value in leaves.items():
            if not is_nothing(value):
                self._take_leaf(path, value)
        self._take_checks(taken.checks, has_own_assertions=taken.extra is not None)
        # Now, since places, pages and grades may stand in columns before or behind their golds.
        self._join_alternatives()
        self.case = without_none_words(self.case)
        self._name_places()
        self._name_pages()
        self._grade_ids()
        if self._says_unanswerable(taken.leaves):
            self._drop_gold()
        if self.metadata:
            self.case["metadata"] = self.metadata
        self._name_chunks()
        self.answer = with_empty_retrieval(self.answer, taken.leaves, self._columns.meanings)
        self.case = with_extra_parts(self.case, taken.extra)

    def _take_leaf(self, path: str, value: Json) -> None:
        """Take a member as what its column means; one without a meaning goes into the metadata."""
        if path in KEPT and isinstance(value, dict):
            for name, inner in value.items():
                meant = self._columns.meanings.get(f"{path}.{name}")
                if meant is None or is_nothing(inner) or not self._take(meant, f"{path}.{name}", inner):
                    self.metadata[name] = inner
                    self.kept_at[name] = f"{path}.{name}"
            return
        if self._columns.signs.get(path) in ("answerable", "unanswerable"):
            self.used.setdefault(ANSWERABLE, path)
            return
        meant = self._columns.meanings.get(path)
        is_numbered = path in self._columns.numbered
        may_join_others = is_numbered or meant in (FACTS, ALTERNATIVES)
        is_free = meant is not None and (may_join_others or meant not in self.used)
        taken_value = [value] if is_numbered and not isinstance(value, list) else value
        if meant is None or not is_free or not self._take(meant, path, taken_value):
            self._keep(path, last_name(path), value)

    def _take_expression(self, row: Json, field: str, expression: str, leaves: dict[str, Json]) -> None:
        """Take what an expression finds, and drop the leaves that it names."""
        try:
            value = jmespath.search(expression, row)
        except JMESPathError as error:
            raise CaseError(f"{field} = {expression} does not fit a row: {str(error).splitlines()[0]}") from None
        if value is None or value in ("", []):
            return
        path = expression if SIMPLE.fullmatch(expression) else ""
        path = path.replace('"', "")
        while isinstance(value, dict) and field not in (PLACES, IDS) and (inner := member_named(value, field)):
            value = value[inner]
            path = f"{path}.{inner}"
        if field == ANSWER and isinstance(value, dict):
            is_span = "answer_start" in value
            if not is_span and member_named(value, ANSWER) is None:
                return  # what is expected stands in several members, none of them an answer
        is_path_of_leaves = any(is_within(leaf, path) for leaf in leaves)
        roots = [path] if is_path_of_leaves else roots_of(expression)
        if self._take(field, path or expression, value):
            for leaf in list(leaves):
                if any(is_within(leaf, root) for root in roots):
                    del leaves[leaf]

    def _keep(self, path: str, name: str, value: Json) -> None:
        kept_name = path if name in self.metadata else name
        self.metadata[kept_name] = value
        self.kept_at[kept_name] = path

    def _take(self, meant: str, path: str, value: Json) -> bool:
        """Convert a value of a field; return False if it is none."""
        if meant in OF_SYSTEM:
            return self._take_given(meant, path, value)
        keys = self._keys(meant, path, value)
        if keys is None:
            return False
        for name, part in keys.items():
            held = self.case.get(name)
            if name == "gold" and isinstance(held, dict):
                self.case[name] = joined_gold(held, part)
            elif name in ("expected_key_facts", ALTERNATIVES) and held:
                # Several columns may repeat one fact: it is kept once, at its first place.
                self.case[name] = list(dict.fromkeys([*held, *part]))
            elif path in self._columns.numbered and held:
                self.case[name] = [*held, *part]
            else:
                self.case[name] = part
        self._names |= dict.fromkeys(keys, path)
        self._written[path] = value
        self.used.setdefault(meant, path)
        return True

    def _keys(self, meant: str, path: str, value: Json) -> dict[str, Json] | None:
        """Return the keys of a case that hold the value of a field; None if it is none."""
        if meant in LISTED and isinstance(value, str) and (items := printed_value(value)) is not None:
            value = items
        if meant in READERS:
            return READERS[meant](value)
        if meant == QUESTION and isinstance(value, list):
            keys, answer = conversation_of(value)
            self.answer |= answer
            return keys
        if meant == CONTEXTS:
            return self._context_keys(path, value)
        if meant == ANSWERABLE:
            # What an expression gives means what it says; a column alone was read as one of signs.
            flag = truth_of(value)
            self._answerable = value if flag is None else flag
            return {}
        return {"question" if meant == QUESTION else meant: value}

    def _context_keys(self, path: str, value: Json) -> dict[str, Json] | None:
        """Return contexts, or the places and ids that objects of gold evidence name; both if they hold both."""
        values = value if isinstance(value, list) else [value]
        texts = texts_of(values)
        keys: dict[str, Json] = {} if texts is None else {"contexts": texts}
        has_objects = all(isinstance(each, dict) for each in values)
        names_places = is_gold_name(path) or have_places(values)
        if has_objects and names_places and not {"gold", "gold_supports"} & self.case.keys():
            keys |= gold_places(values, as_ids=False) or {}
            if titles := unread_titles(values):
                self._keep(f"{path}[].title", f"{last_name(path)}[].title", titles)
        return keys or None

    def _take_given(self, meant: str, path: str, value: Json) -> bool:
        parts = given_parts(meant, value)
        if parts is None:
            return False
        self.answer |= parts
        self.used[meant] = path
        return True

    def _take_checks(self, checks: Sequence[Mapping[str, Json]], *, has_own_assertions: bool) -> None:
        """Take promptfoo's checks as gold and assertions; our own export keeps its assertions elsewhere."""
        read = gold_of_checks(checks, self._folder)
        if read.answers and ANSWER not in self.used:
            self._take(ANSWER, "assert", read.answers)
        if read.facts:
            self._take(FACTS, "assert", read.facts)
        asserted = assertions_of_checks(() if has_own_assertions else checks, self._folder)
        if asserted.assertions:
            self.case["assert"] = asserted.assertions
        unused = unconverted(read.unused, asserted, is_own_export=has_own_assertions)
        if kept := [*unused, *read.unread]:
            self.metadata["assert"] = kept
        self.unused = Counter(str(check.get("type")) for check in unused)
        self.notes += [*read.reasons, *asserted.reasons]

    def _name_places(self) -> None:
        """Give the gold places their headings, one each; what fits no places is kept as metadata."""
        headings = self.case.pop(HEADINGS, None)
        if headings is None:
            return
        if places := with_headings(self.case.get("gold_supports"), headings):
            self.case["gold_supports"] = places
        else:
            path = self.used.pop(HEADINGS)
            self._keep(path, last_name(path), headings)

    def _name_pages(self) -> None:
        """Give the gold places their pages, a place each; what fits no places is kept as metadata."""
        pages = self.case.pop(PAGES, None)
        if pages is None:
            return
        if places := with_pages(self.case.get("gold_supports"), pages):
            self.case["gold_supports"] = places
        else:
            path = self.used.pop(PAGES)
            self._keep(path, last_name(path), self._written[path])

    def _grade_ids(self) -> None:
        """Give the gold ids their grades, in the same order; grades that fit no ids are kept as metadata."""
        grades = self.case.pop(GRADES, None)
        if grades is None:
            return
        gold = self.case.get("gold") or {}
        if graded := graded_ids(gold.get("chunk_ids", ()), grades):
            self.case |= graded
        else:
            path = self.used.pop(GRADES)
            self._keep(path, last_name(path), grades)

    def _join_alternatives(self) -> None:
        """Join more right answers to the first one."""
        more = self.case.pop(ALTERNATIVES, None)
        if more is None:
            return
        first = self.case.pop("reference", None)
        known = [first] if first is not None else self.case.pop("expected_answers", [])
        self.case["expected_answers"] = list(dict.fromkeys([*known, *more]))

    # ── without an answer ─────────────────────────────────────────────────────────────────────────────────────

    def _says_unanswerable(self, leaves: Mapping[str, Json]) -> bool:
        """Return True if the row says that there is no answer; keep what it says in the case."""
        said = self._answerable
        if said is None:
            said = self._by_signs(leaves)
        if said is None and self._has_refusing_gold():
            said = False
        if said is True and "category" not in self.case:
            return False  # the usual case needs no word of it
        if said is not None:
            self.case["answerable"] = said
        return said is False

    def _has_refusing_gold(self) -> bool:
        """Return True if the right answer only says that there is none; note that it is read so."""
        golds = written_golds(self.case)
        if any(map(says_not_present, golds)):
            return True
        if self._says_when_answerable or not golds_decline(golds, self.case.get("question")):
            return False
        self.notes.append(DECLINING_GOLD)
        return True

    def _by_signs(self, leaves: Mapping[str, Json]) -> bool | None:
        """Return what the columns of signs say in this row: flags before categories; note if two contradict."""
        said: dict[str, bool] = {}
        kinds: dict[str, Json] = {}
        for path, sign in self._columns.signs.items():
            value = member_at(leaves, path)
            if sign == "kind":
                kinds[path] = value
            elif (flag := self._columns.answerable(path, value)) is not None:
                said[path] = flag
        # Not decided for the user: a wrong guess would turn the case's verdict round.
        if len({*said.values()}) > 1:
            yes = next(path for path, flag in said.items() if flag)
            no = next(path for path, flag in said.items() if not flag)
            self.questions.append(
                f"{yes} says that there is an answer, {no} that there is none: {map_option(ANSWERABLE, yes)} or "
                f"{map_option(ANSWERABLE, no)}"
            )
        if said:
            return next(iter(said.values()))
        is_placed = bool({"gold_supports", "gold"} & self.case.keys())
        for value in kinds.values():
            if answerable_by("kind", value) is False or (is_negative(value) and not is_placed):
                return False
        return None

    def _drop_gold(self) -> None:
        """Move what stands as gold of a question without an answer into the metadata."""
        for key in GOLD_KEYS & self.case.keys():
            del self.case[key]
            if (path := self._names.get(key)) in self._written:
                self._keep(path, last_name(path), self._written[path])

    def _name_chunks(self) -> None:
        """Assign ids and places to the retrieved texts; alone they become chunks without text."""
        for field in (RETRIEVED_IDS, RETRIEVED_PATHS):
            if parts := self.answer.pop(field, None):
                chunks = self.answer.get("retrieved_chunks") or [{"rank": rank} for rank in range(1, len(parts) + 1)]
                for chunk, part in zip(chunks, parts, strict=False):
                    chunk.update(part)
                self.answer["retrieved_chunks"] = chunks

    def as_written(self, finding: Finding) -> Finding:
        """Return the problem with the row's own name of the key."""
        first = finding.path[0] if finding.path else None
        if first is None or first not in self._names:
            return finding
        return finding._replace(path=(self._names[str(first)], *finding.path[1:]))
