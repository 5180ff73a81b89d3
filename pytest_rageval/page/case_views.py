"""What the pages of many cases of a run show, their records read once from front to back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pytest_rageval.page.case_view import RunView, case_view
from pytest_rageval.page.page_run import PageRun
from pytest_rageval.page.run_cases import ListedCase, read_answers, read_case_lines


def case_views(page: PageRun, cases: Sequence[ListedCase]) -> Iterator[dict[str, Any] | None]:
    """The content of the page of each of these cases; None of one without a record, none where no records are kept."""
    keys = {case.key for case in cases}
    lines = read_case_lines(page.side.run, keys, page.damages) if page.side.run and page.side.has_records else {}
    other = page.before if page.compared else None
    before = read_answers(other.run, keys, page.damages) if other and other.run and other.has_records else {}
    view = RunView(
        page.run_id,
        page.config,
        page.metrics["metrics"],
        page.registry,
        page.names,
        other.run_id if other else None,
    )
    for case in cases if lines else ():
        yield case_view(case, lines[case.key], before.get(case.key), view) if case.key in lines else None
