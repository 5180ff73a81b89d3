"""A run for trec_eval: what came, in order, and what of it is relevant."""

from __future__ import annotations

import pytest
from project import Project, a_case, a_missed_case, lines_with


def exported(project: Project, form: str) -> list[str]:
    result = project.rageval("export", "latest", "--format", form, "--output", "-")
    assert result.ret == 0
    return list(result.outlines)


def test_chunks_come_by_rank_and_golds_that_did_not_come_stand_under_their_own_name(project: Project):
    project.cases([a_case("boil"), a_missed_case("lost one"), a_case("odd", "Boiling or freezing?")])
    project.run()
    run_id = project.runs[-1].name
    assert exported(project, "trec-run") == [
        f"evalcases/a.jsonl::boil Q0 c1 1 1 {run_id}",
        f"evalcases/a.jsonl::lost%20one Q0 c1 1 1 {run_id}",
        f"evalcases/a.jsonl::odd Q0 c1 1 2 {run_id}",
        f"evalcases/a.jsonl::odd Q0 c2 2 1 {run_id}",
    ]
    assert exported(project, "trec-qrels") == [
        "evalcases/a.jsonl::boil 0 c1 1",
        "evalcases/a.jsonl::lost%20one 0 notes/elsewhere.md 1",
        "evalcases/a.jsonl::odd 0 c1 1",
    ]


def test_recall_by_those_files_is_the_recall_of_the_run(project: Project):
    project.cases([a_case("boil"), a_missed_case("lost")])
    project.run()
    relevant = {tuple(line.split()[::2]) for line in exported(project, "trec-qrels") if line.endswith(" 1")}
    retrieved = {tuple(line.split()[::2][:2]) for line in exported(project, "trec-run")}
    of_case = {query for query, _ in relevant}
    found = {query: [entry in retrieved for entry in relevant if entry[0] == query] for query in of_case}
    mean = sum(sum(hits) / len(hits) for hits in found.values()) / len(found)
    (project.runs[-1] / "observations.jsonl").unlink()
    result = project.rageval("export", "latest", "--format", "trec-run", "--output", "-")
    assert result.ret == 2
    assert lines_with(result, "keeps no observations.jsonl")
    assert mean == pytest.approx(project.metrics()["metrics"]["context_recall@5"]["mean"])
