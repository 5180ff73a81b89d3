"""Indexing coverage as systems report it: counts under one name, rates, versions, and unknown keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pytest_rageval.io.suggestions import did_you_mean, listed
from pytest_rageval.model import Json
from pytest_rageval.model.versions import is_version

Coverage = Mapping[str, Json]

COUNTS = ("docs_processed", "docs_with_0_chunks", "chunks_attempted", "chunks_embedded", "chunks_skipped")
SHORT_NAMES = {"docs_processed": "processed", "docs_with_0_chunks": "with_0_chunks"}
"""Counts with a shorter name in the coverage of one type of document; the long name is read as well."""
RATES = ("no_chunks_generated_rate", "chunks_skipped_due_to_context_rate")
VERSIONS = {"chunker": "chunker_version", "index": "index_version"}
"""Keys of versions in the coverage, by their names among all versions."""
_OBJECTS = ("chunks_skipped_reasons", "chunk_token_stats", "coverage_by_doc_type", "docs_with_0_chunks_reasons")
_UNCOUNTED = ("docs_without_chunks", "parameters")
"""Details that are recorded and never computed with."""


def indexing_rates(coverage: Coverage) -> dict[str, float | None]:
    """Return the two rates of a coverage; None if their counts are absent, no counts, or contradictory.

    Rates: `docs_with_0_chunks` of `docs_processed`, and `chunks_skipped_reasons.context_limit_exceeded` (absent: 0)
    of `chunks_attempted`. Without reasons `chunks_skipped` counts; without attempted chunks the sum of embedded and
    skipped ones. Counts that are reported only by type of document are added up.
    """
    counts = _with_sums(coverage)
    attempted = counts.get("chunks_attempted")
    if attempted is None:
        attempted = _sum(_count(counts.get(name)) for name in ("chunks_embedded", "chunks_skipped"))
    return {
        "no_chunks_generated_rate": _rate(counts.get("docs_with_0_chunks"), counts.get("docs_processed")),
        "chunks_skipped_due_to_context_rate": _rate(_skipped_for_context(counts), attempted),
    }


def coverage_by_doc_type(coverage: Coverage) -> dict[str, dict[str, Json]] | None:
    """Return the counts and the two rates of each type of document (markdown, pdf, code); None if not reported."""
    reported = coverage.get("coverage_by_doc_type")
    if not isinstance(reported, Mapping):
        return None
    by_type: dict[str, dict[str, Json]] = {}
    for doc_type, reported_counts in sorted(reported.items()):
        if not isinstance(reported_counts, Mapping):
            continue
        counts = _long_names(reported_counts)
        shown: dict[str, Json] = {}
        for name, value in sorted(counts.items()):
            if type(value) is int:  # True is no count
                shown[SHORT_NAMES.get(name, name)] = value
        by_type[str(doc_type)] = shown | indexing_rates(counts)
    return by_type


def with_rates(coverage: Coverage | None) -> dict[str, Json] | None:
    """Return the coverage for metrics.json: as reported, with sums of counts by type, and the two rates."""
    if coverage is None:
        return None
    return {**_with_sums(coverage), **indexing_rates(coverage)}


def reported_versions(coverage: Coverage | None) -> dict[str, Json]:
    """Return the versions of chunker and index in the coverage, without what is no version."""
    reported = {name: (coverage or {}).get(key) for name, key in VERSIONS.items()}
    return {name: version for name, version in reported.items() if version is not None and is_version(version)}


def not_understood(coverage: Coverage | None) -> str | None:
    """Return a line about unknown keys and values that are no counts; None if all was read."""
    problems = list(_problems(coverage or {}))
    if not problems:
        return None
    return f"the system reports of its index what is not understood: {listed(problems, 10)}"


def _problems(coverage: Coverage) -> Iterator[str]:
    yield from _wrong("", coverage, COUNTS, (*RATES, *VERSIONS.values(), *_OBJECTS, *_UNCOUNTED))
    for name in VERSIONS.values():
        if (version := coverage.get(name)) is not None and not is_version(version):
            yield f"{name} is no version"
    for name in _OBJECTS:
        if not isinstance(coverage.get(name, {}), Mapping | None):
            yield f"{name} is no object"
    reasons = coverage.get("chunks_skipped_reasons")
    if isinstance(reasons, Mapping):
        yield from _wrong("chunks_skipped_reasons.", reasons, tuple(reasons))
    by_type = coverage.get("coverage_by_doc_type")
    if not isinstance(by_type, Mapping):
        return
    for doc_type, counts in by_type.items():
        place = f"coverage_by_doc_type.{doc_type}"
        if isinstance(counts, Mapping):
            yield from _wrong(f"{place}.", counts, (*COUNTS, *SHORT_NAMES.values()), (*RATES, *_OBJECTS[:2]))
        else:
            yield f"{place} is no object"


def _wrong(place: str, counts: Coverage, names: tuple[str, ...], others: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the unknown keys, the values that are no counts, and parts that are larger than their whole."""
    for name, value in counts.items():
        if name not in (*names, *others):
            yield f"{place}{name} is not a known key{did_you_mean(name, (*names, *others))}"
        elif name in names and value is not None and _count(value) is None:
            yield f"{place}{name} is no count"
    read = {name: _count(value) for name, value in _long_names(counts).items()}
    for part, total in (("docs_with_0_chunks", "docs_processed"), ("chunks_skipped", "chunks_attempted")):
        part_count = read.get(part)
        total_count = read.get(total)
        if part_count is not None and total_count is not None and part_count > total_count:
            yield f"{place}{part} is {part_count}, more than {total}, {total_count}"


def _count(value: Json) -> int | None:
    # Not `isinstance`: True is no count.
    return value if type(value) is int and value >= 0 else None


def _long_names(counts: Coverage) -> dict[str, Json]:
    """Return the counts of one type of document by the names that they have for all documents."""
    short = {long: counts[name] for long, name in SHORT_NAMES.items() if name in counts}
    return {name: value for name, value in counts.items() if name not in SHORT_NAMES.values()} | short


def _with_sums(coverage: Coverage) -> dict[str, Json]:
    """Return the coverage, with counts that it holds only by type of document added up."""
    by_type = coverage.get("coverage_by_doc_type")
    if not isinstance(by_type, Mapping) or not by_type:
        return dict(coverage)
    types = [_long_names(counts) for counts in by_type.values() if isinstance(counts, Mapping)]
    summed = dict(coverage)
    for name in COUNTS:
        if coverage.get(name) is not None:
            continue
        total = _sum(_count(counts.get(name)) for counts in types)
        if total is not None:
            summed[name] = total
    return summed


def _skipped_for_context(counts: Coverage) -> Json:
    reasons = counts.get("chunks_skipped_reasons")
    if isinstance(reasons, Mapping) and (reasons or counts.get("chunks_skipped") is None):
        return reasons.get("context_limit_exceeded", 0)
    return counts.get("chunks_skipped")


def _sum(counts: Iterable[int | None]) -> int | None:
    """Return the sum of the counts; None if one is missing."""
    total: int | None = None
    for count in counts:
        if count is None:
            return None
        total = (total or 0) + count
    return total


def _rate(part: Json, total: Json) -> float | None:
    if type(part) is not int or type(total) is not int:
        return None
    # A rate of nothing, or above 1, is no rate: None keeps it out of gates and means.
    if total == 0 or not 0 <= part <= total:
        return None
    return part / total
