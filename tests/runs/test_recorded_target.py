from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from stored_runs import sealed

from pytest_rageval.errors import CaseError, SettingsError, TargetError
from pytest_rageval.model import Answer, AskRequest, Chunk
from pytest_rageval.runs.recorded_target import RecordedTarget
from pytest_rageval.targets.native_contract import answer_to_response


def a_run(folder: Path, *lines: object, end: str = "\n") -> Path:
    run = folder / "20251218_063617"
    run.mkdir()
    written = [line if isinstance(line, str) else sealed(json.dumps(line)) for line in lines]
    (run / "observations.jsonl").write_text("\n".join(written) + end, encoding="utf-8")
    return run


def recorded(key: str, answer: Answer | None, trial: int = 0) -> dict[str, object]:
    return {
        "schema": 2,
        "case_key": key,
        "trial": trial,
        "answer": None if answer is None else answer_to_response(answer),
    }


def ask(target: RecordedTarget, key: str, trial: int = 0) -> Answer:
    return asyncio.run(target.ask(AskRequest("?", 5, case_key=key, trial=trial)))


def test_answers_come_back_as_they_were_recorded(tmp_path: Path):
    answer = Answer(text="x", chunks=(Chunk("c1", score_final=0.5, extra={"a": 1}),), latency={"retrieval_ms": 1.5})
    target = RecordedTarget(a_run(tmp_path, recorded("a::q1", answer), recorded("a::q2", Answer(text="y"))))
    assert target.name == "run:20251218_063617"
    assert ask(target, "a::q1") == answer
    assert target.notes == []


def test_each_trial_has_its_own_answer_and_the_last_record_of_it_counts(tmp_path: Path):
    run = a_run(
        tmp_path,
        recorded("a::q1", Answer(text="first")),
        recorded("a::q1", Answer(text="other"), trial=1),
        recorded("a::q1", Answer(text="again")),
    )
    target = RecordedTarget(run)
    assert (ask(target, "a::q1").text, ask(target, "a::q1", 1).text) == ("again", "other")


def test_what_was_not_answered_is_missing(tmp_path: Path):
    target = RecordedTarget(a_run(tmp_path, recorded("a::q1", None), recorded("a::q2", Answer(text="x"))))
    for key, trial, said in [("a::q1", 0, "a::q1"), ("a::q9", 0, "a::q9"), ("a::q2", 3, "a::q2, trial 3")]:
        with pytest.raises(TargetError) as caught:
            ask(target, key, trial)
        assert (caught.value.kind, str(caught.value)) == (
            "missing",
            f"run:20251218_063617: no answer is recorded for {said}",
        )
    assert not target.has_answer("a::q1")
    assert target.has_answer("a::q2")


def test_a_damaged_file_is_said_line_by_line(tmp_path: Path):
    run = a_run(
        tmp_path,
        "{oops",
        {"schema": 2, "trial": 0},
        {"trial": 0, "case_key": "a", "answer": {"answer": 7}},
        {"schema": 2, "case_key": "a", "trial": "x"},
        '{"schema": 2, "case_key": "a", "trial": 0}',
        sealed('{"a":1}').replace("1", "2"),
    )
    with pytest.raises(CaseError) as caught:
        RecordedTarget(run)
    place = "20251218_063617/observations.jsonl"
    assert list(caught.value.problems) == [
        f"{place}:1:1: has no checksum at its end",
        f"{place}:2:1: is not a record: it names no case and trial",
        f"{place}:3:52: answer.answer is 7 (a number), expected a string",
        f"{place}:4:1: is not a record: it names no case and trial",
        f"{place}:5:1: has no checksum at its end",
        f"{place}:6:1: does not match its checksum",
    ]


def test_a_run_without_observations_is_a_settings_error(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"there is no .*observations\.jsonl; .*redacted"):
        RecordedTarget(tmp_path)
