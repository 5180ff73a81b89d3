"""How far a session was to go, and which of its tests it came to: what tells a partial run from a whole one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from pytest_rageval.finish import Extent
from pytest_rageval.model import EvalCase
from pytest_rageval.plugin.active import ActiveSession
from pytest_rageval.plugin.items import EvalItem

OURS = frozenset({"rageval", "rag_client", "rag_judge", "rag_judge_cache"})
"""Fixtures through which a test of the project's own may evaluate cases."""


def extent_of(
    session: pytest.Session, exitstatus: int, active: ActiveSession, expected: Mapping[str, EvalCase]
) -> Extent:
    """The extent of the run. `expected`: the selected cases, by node id."""
    is_interrupted = exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    return Extent(
        every={case.key for case in active.all_cases()},
        expected={case.key for case in expected.values()},
        unreached=_unreached(session, active, expected),
        selection={option: active.mask.text(value) for option, value in _selection(session.config)},
        is_ended_early=bool(session.shouldstop or session.shouldfail) or is_interrupted,
        has_unread_files=any(active.load(path).problems for path in active.session.all_files),
        exit_status=int(exitstatus),
    )


def _unreached(session: pytest.Session, active: ActiveSession, expected: Mapping[str, EvalCase]) -> int:
    """How many tests of the project's own that may evaluate cases have come to no outcome.

    The controller of xdist cannot see what a test uses: where any has evaluated a case, all others may.
    """
    ended = active.session.ended
    if not session.config.pluginmanager.hasplugin("dsession"):
        own = (item for item in session.items if not isinstance(item, EvalItem) and OURS & {*_fixtures(item)})
        return sum(item.nodeid not in ended for item in own)
    keys = {case.key for case in active.all_cases()}
    if keys.issuperset(active.writer.rows.keys):
        return 0
    return sum(nodeid not in ended and nodeid not in expected for nodeid in active.session.ids_of_workers)


def _fixtures(item: pytest.Item) -> list[str]:
    return list(getattr(item, "fixturenames", ()))


def _selection(config: pytest.Config) -> Iterator[tuple[str, str]]:
    """What was said to select tests, by option."""
    option = config.option
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        yield "paths", " ".join(map(str, config.args))
    for name, value in (("-k", option.keyword), ("-m", option.markexpr), ("--rageval-shard", option.rageval_shard)):
        if value:
            yield name, str(value)
    if option.deselect:
        yield "--deselect", " ".join(option.deselect)
    if getattr(option, "lf", False):
        yield "--lf", "the cases that failed last"
