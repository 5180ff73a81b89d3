"""The planned extent of a session and the tests that it reached: they tell a partial run from a whole one."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pytest

from pytest_rageval.comparison.verdict_reasons import RUN_THROUGH
from pytest_rageval.plugin.active import ActiveSession
from pytest_rageval.plugin.items import EvalItem, without_group
from pytest_rageval.run.extent import Extent
from pytest_rageval.runs.row import cases_of

OURS = frozenset({"rageval", "rag_client", "rag_judge", "rag_judge_cache"})
"""Fixtures through which a test of the project's own may evaluate cases."""


def extent_of(session: pytest.Session, exitstatus: int, active: ActiveSession) -> Extent:
    """Return the extent of the run."""
    is_interrupted = exitstatus not in RUN_THROUGH
    every = {case.key for case in active.all_cases()}
    expected = {case.key for case in active.expected.values()}
    selection = {option: active.mask.text(value) for option, value in _selection(session.config)}
    has_unread_files = any(active.load(path).problems for path in active.session.all_files)
    uncounted: list[str] = []
    overcounted: list[str] = []
    if not is_interrupted:
        uncounted = sorted(_uncounted(session, exitstatus, active))
        overcounted = sorted(_overcounted(active))
    return Extent(
        every=every,
        expected=expected,
        unreached=_unreached(session, active),
        selection=selection,
        is_ended_early=bool(session.shouldstop or session.shouldfail) or is_interrupted,
        has_unread_files=has_unread_files,
        exit_status=int(exitstatus),
        uncounted=uncounted,
        overcounted=overcounted,
    )


FAILING_OUTCOMES = frozenset({"failed", "error"})
"""Outcomes of cases that pytest must count as failed."""
SHOWN_AS_GOOD = frozenset({"", "passed", "skipped", "xfailed", "xpassed"})
"""Categories of the terminal that must not contain a failing case."""


def _uncounted(session: pytest.Session, exitstatus: int, active: ActiveSession) -> Iterator[str]:
    """Yield the keys of cases that failed or ended in errors and that pytest did not count or show so.

    Hooks of the project or of a plugin can swallow, replace or rewrite reports; records are made before them.
    """
    failing = {row.key for row in cases_of(active.writer.rows.values()) if row.outcome in FAILING_OUTCOMES}
    counted: Collection[str] = ()
    if failing and exitstatus:  # exit code 0 shows no failure, whatever the reports say
        counted = _counted(session.config, active.session.failed)
    is_stopped = bool(session.shouldstop or session.shouldfail)
    ended = _plain(active.session.ended) if is_stopped else frozenset()
    nodeids = {case.key: nodeid for nodeid, case in active.expected.items() if case.key in failing}
    unfinished = active.opened().unfinished
    for key in failing:
        if key in nodeids:
            names = {*without_group(nodeids[key])}
        else:
            if unfinished is not None and unfinished.is_done(key):
                continue  # recorded by the session that is resumed; pytest counts only tests of this one
            names = _possible_nodeids(key)
        is_counted = not names.isdisjoint(counted)
        is_cut_off = is_stopped and names.isdisjoint(ended)  # -x or the like: pytest ended before the test's outcome
        if not is_counted and not is_cut_off:
            yield key


def _possible_nodeids(key: str) -> set[str]:
    """Return the node ids of tests of the project's own that a case's key may end with: their start is unknown."""
    parts = key.split("::")
    return {"::".join(parts[start:]) for start in range(2, len(parts))}


def _overcounted(active: ActiveSession) -> Iterator[str]:
    """Yield the keys of cases that passed when run again after their worker died, where pytest counts the death.

    Some schedulers of xdist run such a case again; pytest's count of the first attempt stands.
    """
    crashes = active.writer.crashes
    failed = active.session.failed
    for nodeid, case in active.expected.items():
        if crashes[case.key] and nodeid in failed:
            trials = [row for row in active.writer.rows.values() if row.key == case.key]
            for row in cases_of(trials):
                if row.outcome not in FAILING_OUTCOMES:
                    yield row.key


def _counted(config: pytest.Config, failed: set[str]) -> frozenset[str]:
    """Return the tests that pytest counted as failed and that its terminal does not show as good."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    # With `-p no:terminal`, pytest's own count is all there is.
    if terminal is None:
        return _plain(failed)
    shown: set[str] = set()
    for kind, reports in terminal.stats.items():
        if kind not in SHOWN_AS_GOOD:
            shown |= {getattr(report, "nodeid", "") for report in reports}
    return _plain(failed & shown)


def _plain(nodeids: Collection[str]) -> frozenset[str]:
    """Return node ids without the groups that xdist appends."""
    plain: set[str] = set()
    for nodeid in nodeids:
        plain.update(without_group(nodeid))
    return frozenset(plain)


def _unreached(session: pytest.Session, active: ActiveSession) -> int:
    """Return how many tests of the project's own that may evaluate cases have no outcome.

    The controller of xdist cannot see what a test uses: where any has evaluated a case, all others may.
    """
    ended = active.session.ended
    if not session.config.pluginmanager.hasplugin("dsession"):
        others = (item for item in session.items if item.nodeid not in ended and not isinstance(item, EvalItem))
        return sum(not OURS.isdisjoint(getattr(item, "fixturenames", ())) for item in others)
    keys = {case.key for case in active.all_cases()}
    if keys.issuperset(key for key, _ in active.writer.rows):
        return 0
    return sum(nodeid not in ended and nodeid not in active.expected for nodeid in active.session.ids_of_workers)


def _selection(config: pytest.Config) -> Iterator[tuple[str, str]]:
    """Yield the options that selected tests, with their values."""
    option = config.option
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        yield "paths", " ".join(map(str, config.args))
    options = {"-k": option.keyword, "-m": option.markexpr, "--rageval-shard": option.rageval_shard}
    for name, value in options.items():
        if value:
            yield name, str(value)
    if option.deselect:
        yield "--deselect", " ".join(option.deselect)
    if getattr(option, "lf", False):
        yield "--lf", "the cases that failed last"
