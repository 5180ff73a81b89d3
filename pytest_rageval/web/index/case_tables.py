"""The cases of one run as tables of the index: put in when the run is first opened, and anew when its files change."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from pytest_rageval.comparison.filter_language import DROP, LATENCY, LEVEL, FilterVocabulary
from pytest_rageval.io.collector import no_collection
from pytest_rageval.judges.cache.cache_file import transaction
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.runs.columns import SCORES
from pytest_rageval.runs.reader import METRICS, RESULTS, StoredRun
from pytest_rageval.runs.results_file import journals
from pytest_rageval.text import printable
from pytest_rageval.web.index.case_rows import CASE_COLUMNS, CaseListing, RowMaker, listing_of, read_listing
from pytest_rageval.web.index.run_index import RunIndex, drop_cases

KEPT_TABLES = 40
"""Runs whose cases are kept; those of the ones opened longest ago go."""
WAIT = 20
"""The cases of a run that is being written are read again after so many times the seconds that reading them took."""
_NUMBERS = frozenset({"latency", "fall", "level", "trials"})


@dataclass(frozen=True)
class IndexedCases:
    """The cases of a run in the index.

    number      of the tables cases_N and texts_N
    metrics     those of which a case has a score, in the order of the columns s0, s1, …
    vocabulary  what the words of a filter mean in them
    compared_with  the run that changes and falls are against; None without one
    """

    number: int
    run_id: str
    cases: int
    metrics: tuple[str, ...]
    vocabulary: FilterVocabulary
    compared_with: str | None

    @property
    def name(self) -> str:
        return f"cases_{self.number}"

    @property
    def texts(self) -> str:
        return f"texts_{self.number}"

    def column(self, metric: str) -> str:
        """The column that holds a metric's scores."""
        return f"s{self.metrics.index(metric)}"


class _Source(NamedTuple):
    """What cases are read from: a run and what it is compared with, the state of the files, and how they are read.

    is_growing  the run has not ended
    """

    run_id: str
    against: str
    stamp: str
    is_growing: bool
    read: Callable[[], CaseListing]


_loading: WeakValueDictionary[tuple[Path, str, str], threading.Lock] = WeakValueDictionary()
"""Held by whoever reads the cases of a run; gone when nobody does."""
_LOADING = threading.Lock()


def open_cases(
    index: RunIndex, run: StoredRun, baseline: Path, read: Callable[[], CaseListing] | None = None
) -> IndexedCases:
    """The cases of a run, read from its records unless the index has them as they are now.

    SettingsError where a file of the run is damaged. `baseline` is the project's baseline file. `read` gives them where
    somebody has read them already.
    """
    other = ((run.metrics or {}).get("comparison") or {}).get("baseline_run_id")
    paths = (
        run.path / METRICS, run.path / RESULTS, *journals(run.path, RESULTS), baseline,
        run.path.parent / Path(str(other)).name / SCORES,
    )  # fmt: skip
    source = _Source(
        printable(run.run_id), "", _stamp(paths), run.metrics is None, read or (lambda: read_listing(run, baseline))
    )
    return _opened(index, source)


def open_compared_cases(index: RunIndex, page: PageRun, against: str) -> IndexedCases:
    """The cases of a run beside those of the run that it is compared with on this page; `against` names that one."""
    folders = [side.run.path for side in (page.side, page.before) if side is not None and side.run is not None]
    stamp = _stamp([folder / name for folder in folders for name in (METRICS, RESULTS, SCORES)])
    return _opened(index, _Source(page.run_id, against, stamp, False, lambda: listing_of(page)))


def _opened(index: RunIndex, source: _Source) -> IndexedCases:
    with _LOADING:  # two requests for one run: the second waits for the first
        key = index.file.path, source.run_id, source.against
        lock = _loading.get(key) or threading.Lock()
        _loading[key] = lock
    with lock:
        return index.read(lambda connection: _present(connection, source) or _load(connection, source))


def _present(connection: sqlite3.Connection, source: _Source) -> IndexedCases | None:
    row = connection.execute(
        "SELECT number, stamp, loaded, seconds, cases, facts FROM case_tables WHERE run_id = ? AND against = ?",
        (source.run_id, source.against),
    ).fetchone()
    if row is None:
        return None
    number, stamp, loaded, seconds, cases, facts = row
    is_recent = source.is_growing and 0 <= time.time() - loaded < WAIT * seconds
    return _table(number, source.run_id, cases, json.loads(facts)) if stamp == source.stamp or is_recent else None


def _table(number: int, run_id: str, cases: int, facts: Mapping[str, Any]) -> IndexedCases:
    vocabulary = FilterVocabulary(
        run_id, facts["values"], tuple(facts["metrics"]), (LATENCY, DROP, LEVEL), tuple(facts["fallen"]),
        is_compared=facts["is_compared"],
    )  # fmt: skip
    return IndexedCases(number, run_id, cases, tuple(facts["metrics"]), vocabulary, facts["compared_with"])


def _stamp(paths: Iterable[Path]) -> str:
    """Times and sizes of what the cases are made from."""
    return " ".join(map(_time_and_size, paths))


def _time_and_size(path: Path) -> str:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return "-"
    return f"{status.st_mtime_ns}:{status.st_size}"


def _load(connection: sqlite3.Connection, source: _Source) -> IndexedCases:
    started = time.monotonic()
    with no_collection():
        listing = source.read()
        metrics = sorted(set().union(*(case.row.scores for case in listing.cases)))
        with transaction(connection):
            number, values = _put_tables(connection, listing, metrics)
            facts = {
                "metrics": metrics,
                "values": values,
                "fallen": sorted({metric for fallen in listing.falls.values() for metric in fallen}),
                "is_compared": listing.is_compared,
                "compared_with": listing.compared_with,
            }
            _forget(connection, "run_id = ? AND against = ?", source.run_id, source.against)
            seconds = time.monotonic() - started
            row = (number, source.run_id, source.against, source.stamp, time.time(), seconds, len(listing.cases))
            connection.execute("INSERT INTO case_tables VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, json.dumps(facts)))
            newest = "SELECT number FROM case_tables ORDER BY loaded DESC LIMIT ?"
            _forget(connection, f"number NOT IN ({newest})", KEPT_TABLES)
    return _table(number, source.run_id, len(listing.cases), facts)


def _put_tables(
    connection: sqlite3.Connection, listing: CaseListing, metrics: Sequence[str]
) -> tuple[int, Mapping[str, Sequence[str]]]:
    """Make and fill the two tables: their number, and by word of the filter language what the cases have."""
    (number,) = connection.execute(
        "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'case_tables'), 0) + 1"
    ).fetchone()  # fmt: skip
    facts = [f"{name} {'' if name in _NUMBERS else 'TEXT'}" for name in CASE_COLUMNS[1:]]
    columns = ["number INTEGER PRIMARY KEY", *facts, *(f"s{place}" for place in range(len(metrics)))]
    maker = RowMaker(listing, metrics)
    # Names of tables and columns are numbers of ours; every value is bound.
    connection.execute(f"CREATE TABLE cases_{number} ({', '.join(columns)})")
    connection.execute(f"CREATE TABLE texts_{number} (number INTEGER PRIMARY KEY, text TEXT NOT NULL)")
    connection.executemany(f"INSERT INTO cases_{number} VALUES ({', '.join('?' * len(columns))})", maker.rows())  # noqa: S608
    connection.executemany(f"INSERT INTO texts_{number} VALUES (?, ?)", enumerate(maker.texts()))  # noqa: S608
    return int(number), {word: sorted(values) for word, values in maker.values.items()}


def _forget(connection: sqlite3.Connection, condition: str, *values: object) -> None:
    older = connection.execute(f"SELECT number FROM case_tables WHERE {condition}", values).fetchall()  # noqa: S608
    for (number,) in older:
        drop_cases(connection, number)
