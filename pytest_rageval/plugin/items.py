"""Case files as modules, cases as test functions: so that fixtures, marks and selection work as for any other test."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pytest

from pytest_rageval.comparison.outcomes import Ending
from pytest_rageval.errors import GateFailure
from pytest_rageval.io.collector import no_collection
from pytest_rageval.io.messages import escape_text
from pytest_rageval.model import CaseResult, EvalCase, turn_id
from pytest_rageval.model.case_fields import descriptions_of
from pytest_rageval.plugin.light_session import one_case
from pytest_rageval.render.text.failure import failure_text
from pytest_rageval.run.case_blocks import CaseBlocks, EvaluatedCase

PARTS = ("rag_client", "rag_judge", "rag_judge_cache")
"""The fixtures of an item."""


@dataclass(eq=False)
class ItemBatch:
    """Consecutive items with the same target, judge and cache; `fixtures` are these, once the first item has them."""

    cases: list[EvalCase] = field(default_factory=list)
    fixtures: Mapping[str, object] = field(default_factory=dict)
    blocks: CaseBlocks | None = None


class EvalFile(pytest.Module):
    """A case file. A Module, because module-scoped autouse fixtures of a user's conftest break under anything else."""

    # pytest would import the file as a module of Python.
    obj = None

    def __init__(self, *, runner: Any, **collector: Any) -> None:
        """`runner`: the ActiveSession, whose module imports this one."""
        super().__init__(**collector)
        self.runner = runner
        self.mark = pytest.mark.rageval
        self.place: str | None = None
        """The file in the locations of its items, once the first of them has asked pytest."""
        self.hooks = self.ihook
        """The hooks of the `conftest.py` files above, for all items: pytest looks them up eleven times an item."""

    def collect(self) -> Iterator[EvalItem]:
        file = self.runner.load(self.path)
        if file.problems and self.runner.is_reported(self.path):
            # Else each worker of xdist would report them once more.
            return
        if file.problems:
            raise self.CollectError("\n".join(file.problems))
        if not self.runner.is_prepared:
            return
        items: list[EvalItem] = []
        shared: dict[str, Any] = {}  # one resolution of their fixtures
        with no_collection():
            for case in file.cases:
                name = case_node_name(case)
                items.append(EvalItem.from_parent(self, name=name, callobj=one_case, case=case, file=self, **shared))
                shared = shared or fixture_resolution(items[0])
        yield from items


class KnownFailure(pytest.xfail.Exception):  # type: ignore[misc, name-defined] # made by a decorator of pytest's
    """The expected failure of a case that is known to fail.

    It spares pytest a traceback of ours (27 ms), which nobody reads.
    """


class EvalItem(pytest.Function):
    """One case. It is asked, judged and scored in setup, so failures there are errors; a failed gate is a failure."""

    def __init__(self, *, case: EvalCase, file: EvalFile, **function: Any) -> None:
        super().__init__(**function)
        self.case = case
        self.file = file
        self.batch: ItemBatch | None = None
        self.position = 0
        """The place of the case in the batch."""
        self.attempts = 0
        self.recorded_attempt = -1
        """The last recorded attempt. If a hook hides a failed setup, pytest goes on to the call."""
        self.evaluated: EvaluatedCase | None = None
        """The evaluated case, until its records are handed on; None if the resumed run has recorded it."""
        self.verdict: tuple[CaseResult, Ending] | None = None
        """The result and its outcome, until the test reports it."""
        self.add_marker(
            file.mark.with_args(
                id=case.id,
                **descriptions_of(case),
                answerable=case.answerable,
                requires_kg=case.requires_kg,
                **_place_in_conversation(case),
            )
        )
        if case.turn is not None and self.config.getoption("loadgroup", False):
            # xdist keeps the tests of a group on one worker, which asks the turns in their order.
            self.add_marker(pytest.mark.xdist_group(case.unit))

    @property
    def ihook(self) -> Any:
        return self.file.hooks

    @property
    def id(self) -> Any:
        """Return pytest's own form of the node id, from 9.2 on, with the number of a turn as its parameter.

        pytest reads ids of its cache back so, and `--lf` would not find a turn whose id has the number in its name.
        """
        given = super().id
        if self.case.turn is None or given.params is not None:
            return given
        return self.file.id.child(node_name(self.case.conversation or "")).with_params(str(self.case.turn))

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """Return pytest's location; the path is made relative for the first item of a file only."""
        if self.file.place is None:
            self.file.place = escape_text(super().location[0])
        _, line, name = self.reportinfo()
        return self.file.place, line, name

    def listextrakeywords(self) -> set[str]:
        """Return the keywords for `-k`, made on demand: five words in each item are half a kilobyte."""
        return super().listextrakeywords().union(keywords(self.case))

    def setup(self) -> None:
        __tracebackhide__ = True
        self.file.runner.check_asking_allowed()
        self.attempts += 1
        self.evaluated = None
        self.verdict = None
        if self.batch is not None:  # pytest resolves missing ones for each item again, though the session has one value
            self.funcargs.update(self.batch.fixtures)
        super().setup()
        if self.config.option.setuponly:  # --setup-plan sets it too
            return
        interruption: str | None = None
        try:
            self.verdict = self.file.runner.evaluate(self)
        except pytest.fail.Exception as failure:
            # Ours have no traceback; what interrupts us has one.
            if not failure.pytrace:
                raise
            interruption = failure.msg
        if interruption is not None:
            # pytest-timeout interrupts us while we wait: the traceback would be all ours.
            pytest.fail(f"timeout: {interruption}", pytrace=False)

    def runtest(self) -> None:
        __tracebackhide__ = True
        assert self.verdict is not None
        result, ending = self.verdict
        self.verdict = None
        if ending.outcome == "xfailed":
            raise KnownFailure(ending.reason)
        assert_gates(result, ending)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, max(0, self.case.source.line - 1), self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:  # type: ignore[override] # because Function narrows Node alike
        if isinstance(excinfo.value, GateFailure | KnownFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


def assert_gates(result: CaseResult, ending: Ending) -> None:
    """Raise what pytest understands, unless the case passed."""
    __tracebackhide__ = True
    reason = ending.reason or ""
    if ending.outcome == "failed":
        raise GateFailure(failure_text(result, reason))
    if ending.outcome == "xfailed":
        pytest.xfail(reason)
    if ending.outcome == "skipped":
        pytest.skip(reason.removeprefix("Skipped: "))


def fixture_resolution(item: pytest.Function) -> dict[str, Any]:
    """Return what lets a sibling item skip resolving the same fixtures; nothing if pytest stores it elsewhere.

    The one place that reads a private attribute: it saves more than half of the cost of collecting an item.
    """
    info = getattr(item, "_fixtureinfo", None)
    return {} if info is None else {"fixtureinfo": info}


def fixture_definition(item: pytest.Item, name: str) -> Any:
    """Return the definition that gives this item its fixture, or None if it is unknown.

    Overrides that hand on the fixture they override are passed over.
    """
    if not isinstance(item, pytest.Function):
        return None
    info = fixture_resolution(item).get("fixtureinfo")
    definitions = getattr(info, "name2fixturedefs", {}).get(name)
    if not definitions:
        return None
    # pytest lists the outermost definition first; the last overrides all others.
    first, *others = definitions
    for given in reversed(others):
        if not hands_on(getattr(given, "func", None), name):
            return given
    return first


@lru_cache(maxsize=64)
def hands_on(function: Callable[..., object] | None, fixture: str) -> bool:
    """Return True if the function of a fixture only returns or yields the fixture that it overrides."""
    try:
        text = textwrap.dedent(inspect.getsource(inspect.unwrap(function))) if function is not None else ""
        (definition,) = ast.parse(text).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    if not isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    statements = definition.body
    if ast.get_docstring(definition) is not None:
        statements = statements[1:]
    if len(statements) != 1 or not isinstance(statements[0], ast.Return | ast.Expr):
        return False
    value = statements[0].value
    # `yield rag_client`, as in a fixture that only logs, hands on the same system: its items stay in one block.
    if isinstance(value, ast.Yield):
        value = value.value
    return isinstance(value, ast.Name) and value.id == fixture


def without_group(nodeid: str) -> Iterator[str]:
    """Yield a node id, and its form without the group that `--dist loadgroup` appends."""
    yield nodeid
    yield from (nodeid[: mark.start()] for mark in re.finditer("@", nodeid))


def own_nodeid(item: pytest.Item) -> str:
    """Return an item's node id without the group of xdist: it is part of case keys."""
    if not item.config.getoption("loadgroup", False):
        return item.nodeid
    groups: set[str] = set()
    for mark in item.iter_markers("xdist_group"):
        # As xdist reads its mark: the first argument, or `name`.
        name = mark.args[0] if mark.args else mark.kwargs.get("name", "default")
        groups.add(str(name))
    return item.nodeid.removesuffix(f"@{'_'.join(sorted(groups))}")


def item_case(item: pytest.Item) -> EvalCase | None:
    """Return the case of an eval item, or of a test that a case file parametrizes."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    case = getattr(item, "case", None) or parameters.get("eval_case")
    return case if isinstance(case, EvalCase) else None


def _place_in_conversation(case: EvalCase) -> dict[str, object]:
    return {} if case.turn is None else {"conversation": case.conversation, "turn": case.turn}


def keywords(case: EvalCase) -> Iterator[str]:
    yield case.id
    if case.turn is not None:
        yield f"turn{case.turn}"
    yield from case.tags
    yield from filter(None, descriptions_of(case).values())
    if not case.answerable:
        yield "unanswerable"


# pytest splits node ids at `::`, and JUnit at `[`; control characters, marks that turn the direction of writing around
# and lone surrogates cannot be printed.
_ODD = re.compile(r"\\(?=[xu][0-9a-f])|:(?=:)|(?<=:):|\[|[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def _escaped(odd: re.Match[str]) -> str:
    code = ord(odd[0])
    return f"\\u{code:04x}" if code > 255 else f"\\x{code:02x}"


def case_node_name(case: EvalCase) -> str:
    """Return the last part of the node id of a case: `returns[2]` for a turn, as pytest names parameters."""
    if case.turn is None:
        return node_name(case.id)
    return turn_id(node_name(case.conversation or ""), case.turn)


_TURN = re.compile(r"\[\d+\](?=@|$)")


def unit_of(nodeid: str) -> str:
    """Return the node id of what is asked in one place: without the number of a turn, and of a group of xdist.

    The id of no single case ends so: `node_name` escapes its brackets.
    """
    return _TURN.sub("", nodeid)


def node_name(case_id: str) -> str:
    r"""Return a case's id as the last part of a node id, with what pytest cannot carry escaped as `\x5b`."""
    name = _ODD.sub(_escaped, case_id)
    # pytest puts node ids into the environment, which is ASCII under LC_ALL=C without Python's UTF-8 mode.
    encoding = sys.getfilesystemencoding()
    if name.isascii():
        return name
    return name.encode(encoding, "backslashreplace").decode(encoding)
