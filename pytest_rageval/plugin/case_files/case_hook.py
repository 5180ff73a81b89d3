"""Case files as the project's hook `pytest_rageval_case` leaves them, whether pytest collects them or not.

Every process asks the hook once a case, where the file is read: so that checks, hashes and keys are those of the cases
that are asked. It is that of the `conftest.py` files above the case file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_rageval.cases import CaseFile
from pytest_rageval.errors import SettingsError
from pytest_rageval.model import EvalCase
from pytest_rageval.plugin.project_hooks import call_hook
from pytest_rageval.text import printable


class _Above(pytest.Directory):
    """A folder of which nothing is collected but its `conftest.py` files, which pytest loads when it begins."""

    def collect(self) -> Iterator[pytest.Item]:
        return iter(())


def with_case_hook(file: CaseFile, session: pytest.Session) -> CaseFile:
    """The file with the cases that the hook gives in the place of its own; what is wrong with them is a problem of it.

    The place of a case stays: it says where to look, whatever the hook makes of it.
    """
    _load_conftests(file.path, session)
    hook = session.gethookproxy(file.path).pytest_rageval_case
    if not hook.get_hookimpls():
        return file
    cases: dict[str, EvalCase] = {}
    problems = []
    for case in file.cases:
        where = f"{case.source}: case {case.id!r}: pytest_rageval_case"
        try:
            changed = call_hook(hook, case=case)
        except SettingsError as error:  # the file is reported like any broken one
            problems.append(printable(f"{case.source}: case {case.id!r}: {error}"))
            continue
        if changed is None:
            changed = case
        elif not isinstance(changed, EvalCase):
            problems.append(printable(f"{where} returned {type(changed).__name__}, expected an EvalCase or None"))
            continue
        if changed.id in cases:
            first = cases[changed.id].source.line
            problems.append(printable(f"{where}: id {changed.id!r} is already used at line {first}"))
            continue
        cases[changed.id] = changed if changed.source == case.source else replace(changed, source=case.source)
    return replace(file, cases=tuple(cases.values()), problems=(*file.problems, *problems))


def _load_conftests(path: Path, session: pytest.Session) -> None:
    """Have pytest load the `conftest.py` files above a case file.

    It does so itself where it collects: the controller of xdist does not, nor does a session for files left out of it.
    A `conftest.py` that cannot be loaded is said by whoever collects the folder.
    """
    if path.parent.is_relative_to(session.config.rootpath):
        folder = _Above.from_parent(session, path=path.parent, name=str(path.parent))
        session.config.hook.pytest_make_collect_report(collector=folder)
