"""Case files as the project's hook `pytest_rageval_case` leaves them, whether pytest collects them or not.

Every process asks the hook once a case, where the file is read: so that checks, hashes and keys are those of the cases
that are asked. It is that of the `conftest.py` files above the case file. `@pytest.mark.rageval("cases.jsonl",
select=…)` names the cases that a test of the user's own runs over.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_rageval.cases.loading import CaseFile
from pytest_rageval.errors import SettingsError, ends_the_run
from pytest_rageval.io.importing import described_exception
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
    if not hook.get_hookimpls():
        return file
    cases: dict[str, EvalCase] = {}
    problems = []
    for case in file.cases:
        where, problem = f"{case.source}: case {case.id!r}: ", None
        try:
            changed = case if (given := call_hook(hook, case=case)) is None else given
            if not isinstance(changed, EvalCase):
                kind = type(changed).__name__
                problem = f"pytest_rageval_case returned {kind}, expected an EvalCase or None"
            elif changed.id in cases:
                first = cases[changed.id].source.line
                problem = f"pytest_rageval_case: id {changed.id!r} is already used at line {first}"
        except SettingsError as error:  # the file is reported like any broken one
            problem = str(error)
        if problem is not None:
            problems.append(printable(where + problem))
        else:
            cases[changed.id] = changed if changed.source == case.source else replace(changed, source=case.source)
    return replace(file, cases=tuple(cases.values()), problems=(*file.problems, *problems))


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
    if (chosen := selector(select)) is None:
        remedy = "write words that are joined by `and`, `or` and `not`, with parentheses"
        pytest.fail(f"rageval mark: select={select!r}: {remedy}", pytrace=False)
    cases = [case for case in file.cases if chosen([word.lower() for word in keywords(case)])]
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
        tree = ast.parse(python, mode="eval").body
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
