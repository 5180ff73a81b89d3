"""Case files as the project's hook `pytest_rageval_case` leaves them, whether pytest collects them or not.

Every process asks the hook once a case, where the file is read: so that checks, hashes and keys are those of the cases
that are asked. It is that of the `conftest.py` files above the case file. `@pytest.mark.rageval("cases.jsonl",
select=…)` names the cases that a test of the user's own runs over.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_rageval.cases.canonical import case_from_mapping, case_to_mapping, written_small
from pytest_rageval.cases.conversations import linked
from pytest_rageval.cases.loading import CaseFile
from pytest_rageval.errors import CaseError, SettingsError, ends_the_run, message_of
from pytest_rageval.io.importing import described_exception
from pytest_rageval.io.messages import Unsound, shown_value
from pytest_rageval.io.strict_json import plain_json
from pytest_rageval.metrics.registry import Metric
from pytest_rageval.model import EvalCase
from pytest_rageval.plugin.items import keywords
from pytest_rageval.text import printable

if TYPE_CHECKING:
    import pluggy


def call_hook(hook: pluggy.HookCaller, **arguments: object) -> Any:
    """Call a hook of the project's own; raise SettingsError if it raises, except what ends the run in order.

    `pytest.skip` and the like are no Exception of Python's, and would end the session without a word about the run.
    """
    try:
        return hook(**arguments)
    except BaseException as error:
        if ends_the_run(error):
            raise
        raise SettingsError(f"{hook.name}: {described_exception(error)}") from None


MOST_METRICS = 10_000
"""Metrics that a hook may return: a generator may never end."""


def metrics_of_hook(config: pytest.Config) -> list[Metric]:
    """Return the metrics of the project's own; raise SettingsError if a hook returns something else."""
    own: list[Metric] = []
    for given in call_hook(config.hook.pytest_rageval_metrics, config=config):
        where = "pytest_rageval_metrics"
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise SettingsError(f"{where}: returned {shown_value(given)}, expected a list of metrics")
        try:
            own += islice(given, MOST_METRICS)
        except BaseException as error:
            if ends_the_run(error):
                raise
            raise SettingsError(f"{where}: {described_exception(error)}") from None
        if len(own) >= MOST_METRICS:
            raise SettingsError(f"{where}: returned {MOST_METRICS:,} metrics or more, expected a list of some")
    for value in own:
        if not isinstance(value, Metric):
            raise SettingsError(
                f"pytest_rageval_metrics: {shown_value(value)} is not a metric; declare it with "
                "@metric(layer=…, better=…)"
            )
    return own


def add_to_config(config: pytest.Config, run_config: dict[str, Any]) -> None:
    """Let the project's hooks add to config.json; raise SettingsError for a changed key or what no file can hold."""
    # As text: a hook may change what is nested, too.
    before = written_small(run_config)
    names = list(run_config)
    where = "pytest_rageval_run_config: run_config"
    call_hook(config.hook.pytest_rageval_run_config, config=config, run_config=run_config)
    try:
        plain = plain_json(run_config)
    except Unsound as unsound:
        raise SettingsError(f"{where}: {unsound}") from None
    ours = {name: plain[name] for name in names if name in plain}
    if written_small(ours) == before:
        return
    then = json.loads(before)
    changed = [name for name in names if name not in ours or ours[name] != then[name]]
    named = ", ".join(map(repr, changed[:3]))
    raise SettingsError(f"{where}: {named} is what the run says of itself; add keys of your own, and leave the others")


class _ConftestFolder(pytest.Directory):
    """A folder that is collected only for its `conftest.py` files."""

    def collect(self) -> Iterator[pytest.Item]:
        return iter(())


def with_case_hook(file: CaseFile, session: pytest.Session) -> CaseFile:
    """Return the file with the cases as the hook changed them, and with the problems of those.

    The place of a case stays: it says where to look, whatever the hook makes of it.
    """
    _load_conftests(file.path, session)
    hook = session.gethookproxy(file.path).pytest_rageval_case
    # Most projects have no such hook: their cases are not copied.
    if not hook.get_hookimpls():
        return file
    cases: dict[str, EvalCase] = {}
    problems = []
    for case in file.cases:
        try:
            changed = _changed_case(hook, case)
            if changed.id in cases:
                first = cases[changed.id].source.line
                raise SettingsError(f"pytest_rageval_case: id {changed.id!r} is already used at line {first}")
        except SettingsError as error:  # the file is reported like any broken one
            problems.append(printable(f"{case.source}: case {case.id!r}: {error}"))
        else:
            cases[changed.id] = changed
    return replace(file, cases=tuple(linked(cases.values())), problems=(*file.problems, *problems))


def _changed_case(hook: pluggy.HookCaller, case: EvalCase) -> EvalCase:
    given = call_hook(hook, case=case)
    if given is None or given is case:
        return case
    changed = _checked_case(given)
    if case.turn is not None:  # its place in the conversation stays, as its source does
        changed = replace(changed, id=case.id, conversation=case.conversation, turn=case.turn)
    return changed if changed.source == case.source else replace(changed, source=case.source)


def _checked_case(given: object) -> EvalCase:
    """Return the case that a hook gave, read like one of a file; raise SettingsError for what is wrong with it."""
    if not isinstance(given, EvalCase):
        kind = type(given).__name__
        raise SettingsError(f"pytest_rageval_case returned {kind}, expected an EvalCase or None")
    try:
        case = case_from_mapping(plain_json(case_to_mapping(given)))
        blank = [name for name in ("id", "question") if not getattr(case, name).strip()]
        if not blank:
            return case
        problem = f"{blank[0]} is blank"
    except Unsound as unsound:
        problem = str(unsound)
    except CaseError as error:
        problem = error.problems[0].removeprefix("recorded case: ")
    except (AttributeError, TypeError, ValueError) as error:  # a part of the case is no such part at all
        problem = f"holds a part of another type: {message_of(error)}"
    raise SettingsError(f"pytest_rageval_case: the returned case: {problem}")


def _load_conftests(path: Path, session: pytest.Session) -> None:
    """Have pytest load the `conftest.py` files above a case file.

    It does so itself where it collects: the controller of xdist does not, nor does a session for files left out of it.
    A `conftest.py` that cannot be loaded is said by whoever collects the folder.
    """
    if path.parent.is_relative_to(session.config.rootpath):
        folder = _ConftestFolder.from_parent(session, path=path.parent, name=str(path.parent))
        session.config.hook.pytest_make_collect_report(collector=folder)


def marked_cases(metafunc: pytest.Metafunc, load: Callable[[Path], CaseFile]) -> list[EvalCase]:
    """Return the selected cases of the file that the test's mark names; a wrong mark is a collection error."""
    mark = metafunc.definition.get_closest_marker("rageval")
    assert mark is not None
    if len(mark.args) != 1 or not isinstance(mark.args[0], str) or set(mark.kwargs) - {"select"}:
        pytest.fail('rageval mark: write @pytest.mark.rageval("cases.jsonl", select="multi_hop")', pytrace=False)
    path = (metafunc.definition.path.parent / mark.args[0]).resolve()
    if not path.is_file():
        pytest.fail(f"rageval mark: {mark.args[0]}: there is no such file beside the test", pytrace=False)
    file = load(path)
    if file.problems:
        pytest.fail("\n".join(file.problems), pytrace=False)
    select = mark.kwargs.get("select")
    if select is None:
        return list(file.cases)
    chosen = selector(select)
    if chosen is None:
        remedy = "write words that are joined by `and`, `or` and `not`, with parentheses"
        pytest.fail(f"rageval mark: select={select!r}: {remedy}", pytrace=False)
    cases = [case for case in file.cases if chosen(list(map(str.lower, keywords(case))))]
    if not cases:
        pytest.fail(f"rageval mark: select={select!r} leaves no case of {mark.args[0]}", pytrace=False)
    return cases


_WORD = re.compile(r"[^\s()]+")
_OPERATORS = ("and", "or", "not")


def selector(expression: str) -> Callable[[list[str]], bool] | None:
    """Return a `-k` expression (words, and, or, not, parentheses) as a test of keywords; None if it is none."""
    words: list[str] = []

    def as_name(match: re.Match[str]) -> str:
        if match[0] in _OPERATORS:
            return match[0]
        words.append(match[0].lower())
        return f"word_{len(words) - 1}"

    python = _WORD.sub(as_name, " ".join(expression.split()))
    try:
        # Python reads the expression, with words as names. Nothing of it is executed.
        tree = ast.parse(python, mode="eval").body
        # Once without keywords, so that what is no such expression is found here.
        _holds(tree, words, [])
    except (SyntaxError, RecursionError):
        return None
    return lambda names: _holds(tree, words, names)


def _holds(node: ast.expr, words: list[str], names: list[str]) -> bool:
    match node:
        case ast.Name(id=name):
            word = words[int(name.removeprefix("word_"))]
            return any(word in keyword for keyword in names)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _holds(operand, words, names)
        case ast.BoolOp(op=operator, values=values):
            held = [_holds(value, words, names) for value in values]
            return all(held) if isinstance(operator, ast.And) else any(held)
    raise SyntaxError
