"""Portions of cases, and their way to workers that are lost, refuse, or die of a case: without a cluster."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from project import Project, a_case

from pytest_rageval.cases.canonical import content_hash
from pytest_rageval.config.project import Project as Configured
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.model import Anchor, Edge, EvalCase, Gold, Source, Turn
from pytest_rageval.run.prepare import Preparation, prepare
from pytest_rageval.scale import dispatch, portions
from pytest_rageval.scale.assignment import Assignment, WorkerShare, assignment, shares
from pytest_rageval.scale.dispatch import (
    BlockArrival,
    Dispatch,
    Event,
    LostCrewError,
    PortionEnd,
    WorkerLoss,
    WorkerStart,
)
from pytest_rageval.scale.portion_worker import PortionWorker
from pytest_rageval.scale.portions import Block, Portions, portion_size

CASES = [EvalCase(f"q{n}", f"question {n}", source=Source("evalcases/a.jsonl", n + 1)) for n in range(12)]
SHARES = [WorkerShare(number, 2, 4, None) for number in range(2)]


class MadeUpCrew:
    """Workers that tell the ids of their cases, one in a block, until `dies` says that they are gone."""

    def __init__(self, dies: Callable[[str], bool] = lambda _: False, refuses: Collection[int] = ()) -> None:
        self._dies, self._refuses = dies, refuses
        self._events: list[Event] = []
        self._streams: dict[int, Iterator[str]] = {}
        self.started: list[WorkerShare] = []

    def start(self, share: WorkerShare) -> None:
        self.started.append(share)
        self._streams.pop(share.number, None)
        self._events.append(WorkerStart(share.number, ["no such model"] if share.number in self._refuses else []))

    def give(self, worker: int, cases: Sequence[EvalCase]) -> None:
        self._streams[worker] = iter([case.id for case in cases])

    def events(self) -> Collection[Event]:
        events, self._events = self._events, []
        return events or [self._next(worker) for worker in list(self._streams)]

    def _next(self, worker: int) -> Event:
        id = next(self._streams[worker], None)
        if id is None:
            del self._streams[worker]
            return PortionEnd(worker)
        if self._dies(id):
            del self._streams[worker]
            return WorkerLoss(worker, "killed")
        return BlockArrival(worker, Block(1, id.encode(), b"", cost_usd=0.25))

    def notes(self) -> list[str]:
        return []

    def close(self) -> None:
        self._streams.clear()


def dispatched(
    crew: MadeUpCrew, size: int = 5, parts: list[WorkerShare] = SHARES
) -> tuple[list[str], list[str], list[str]]:
    """The ids that came, those that were given up, and the notes."""
    given_up: list[str] = []
    handing_out = Dispatch(crew, Portions(CASES, size), parts, lambda case, _: given_up.append(case.id))
    came = [block.results.decode() for block in handing_out.blocks() if block is not None]
    return came, given_up, handing_out.notes


def test_where_every_worker_dies_it_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dispatch, "MOST_FUTILE", 6)
    crew = MadeUpCrew(lambda _: True)
    with pytest.raises(LostCrewError, match="7 workers were lost one after the other, the last one: killed"):
        dispatched(crew)
    assert len(crew.started) == len(SHARES) + 6


def test_a_worker_that_refuses_is_left_out_and_said():
    came, _, notes = dispatched(MadeUpCrew(refuses=[1]))
    assert len(came) == len(CASES)
    assert notes == ["a worker was left out: no such model"]


def test_a_worker_in_the_place_of_a_lost_one_may_spend_what_that_had_left():
    crew = MadeUpCrew(lambda id: id == "q6")
    dispatched(crew, size=12, parts=[WorkerShare(0, 1, 4, 2.0)])
    assert [share.max_cost for share in crew.started][:3] == [2.0, 0.5, 0.5], "six blocks of 0.25 had come"


@pytest.fixture
def recorded(project: Project) -> Project:
    """Cases with their answers in a file."""
    project.cases([a_case(f"q{n}") for n in range(6)])
    answers = [{"id": f"q{n}", "answer": "Water boils at 100 degrees at sea level."} for n in range(6)]
    project.write("answers.jsonl", "".join(json.dumps(answer) + "\n" for answer in answers))
    tables = '[tool.rageval.gates]\nrun = ["mrr >= 0"]\n[tool.rageval.abstention]\nphrases = ["no idea"]'
    project.configure('target = "answers:answers.jsonl"\nconcurrency = 7\nparams = {a = [1, "x"]}', tables)
    return project


def prepared_in(project: Project, **options: object) -> Preparation:
    options = {"skipped": "L4", **options}
    return prepare(Configured(project.path, load_settings(project.path, options)))


def test_shares_are_the_limits_of_the_run_together(recorded: Project):
    settings = prepared_in(recorded).settings.model_copy(update={"max_cost": 3.0})
    parts = shares(settings, 3)
    assert [share.concurrency for share in parts] == [3, 2, 2]
    assert [share.max_cost for share in parts] == [1.0, 1.0, 1.0]


def test_settings_come_over_as_they_were_but_for_the_share(recorded: Project):
    prepared = prepared_in(recorded)
    written = assignment(prepared, WorkerShare(1, 3, 2, 0.5)).model_dump_json()
    project = Assignment.model_validate_json(written).project
    assert project.root == recorded.path
    assert project.settings == prepared.settings.model_copy(update={"concurrency": 2, "max_cost": 1.5})


def an_assignment(recorded: Project, **options: object) -> str:
    return assignment(prepared_in(recorded, **options), SHARES[0]).model_dump_json()


def accept_baseline(root: Path) -> None:
    (root / "reports").mkdir()
    (root / "reports/baseline.json").write_text("{}")


DIFFERENT: list[tuple[str, Callable[[Path], object], str]] = [
    ("another baseline", accept_baseline, "reports/baseline.json"),
    ("the project is gone", lambda root: root.rename(root.with_name("elsewhere")), "there is no folder"),
    ("no answers", lambda root: (root / "answers.jsonl").unlink(), "answers.jsonl"),
]


@pytest.mark.parametrize(("what", "change", "message"), DIFFERENT, ids=[what for what, _, _ in DIFFERENT])
def test_a_worker_says_why_it_cannot_take_part(
    recorded: Project, what: str, change: Callable[[Path], object], message: str
):
    written = an_assignment(recorded)
    change(recorded.path)
    problems = PortionWorker().begin(written)
    assert len(problems) == 1
    assert message in problems[0]


def test_a_worker_of_another_configuration_names_what_differs(recorded: Project):
    assigned = json.loads(an_assignment(recorded))
    assigned["configuration"] |= {"config_hash": "other", "ontology": "abc"}
    problems = PortionWorker().begin(json.dumps(assigned))
    assert problems[0].startswith("the project is configured otherwise there: ontology")
    assigned["configuration"]["libraries"]["pytest-rageval"] = "0.0.1"
    assert "pytest-rageval is" in PortionWorker().begin(json.dumps(assigned))[0]


def some_cases(number: int) -> list[EvalCase]:
    return [EvalCase(f"q{n}", f"question {n}", source=Source("evalcases/a.jsonl", n + 1)) for n in range(number)]


def ids(cases: object) -> list[str]:
    assert isinstance(cases, (list, tuple))
    return [case.id for case in cases]


def drained(waiting: Portions) -> list[list[str]]:
    taken = []
    while waiting:
        taken.append(ids(waiting.take().cases))
    return taken


@given(st.integers(0, 60), st.integers(1, 20))
def test_portions_are_all_cases_once_and_in_order(number: int, size: int):
    taken = drained(Portions(some_cases(number), size))
    assert [id for portion in taken for id in portion] == ids(some_cases(number))
    assert all(len(portion) <= size for portion in taken)


@given(st.integers(1, 10**8), st.integers(1, 5000), st.integers(1, 1000))
def test_a_portion_is_neither_empty_nor_more_than_a_fair_part(cases: int, workers: int, in_flight: int):
    size = portion_size(cases, workers, in_flight)
    assert 1 <= size <= portions.MOST_CASES
    assert size <= -(-cases // workers)


def test_few_cases_make_several_portions_a_worker_and_many_the_largest():
    assert portion_size(800, 2, 8) == 100
    assert portion_size(100, 2, 8) == 32, "enough to keep what is in flight full"
    assert portion_size(10**8, 100, 8) == portions.MOST_CASES


def test_a_portion_that_is_lost_again_and_again_is_divided_until_a_case_is_alone():
    waiting = Portions(some_cases(8), 8)
    losses, alive = 0, list[str]()
    deadly = None
    while waiting:
        portion = waiting.take()
        if "q5" in ids(portion.cases):
            losses += 1
            deadly = waiting.put_back(portion)
        else:
            alive += ids(portion.cases)
    assert deadly is not None
    assert deadly.id == "q5"
    assert sorted(alive) == ["q0", "q1", "q2", "q3", "q4", "q6", "q7"]
    assert losses == 5, "twice as a whole, then once for each of 4, 2 and 1 cases"


GOLD = Gold(answers=("x",), supports=(Anchor("a.md", "# A", ("s",), "2026-01-01"),), kg_edges=(Edge("a", "is", "b"),))
ODD = [
    EvalCase("a", "lone \ud800 surrogate\nand a line", source=Source("b.jsonl", 3)),
    EvalCase(
        "탑", "높이는?", history=(Turn("user", "안녕"),), contexts=(), tags=("x",), metadata={"n": [1, None, 1.5]}
    ),
    EvalCase("g", "q", answerable=False, requires_kg=True, gold=GOLD),
]


def test_cases_come_over_as_they_were():
    hashes = list(map(content_hash, ODD))
    there = pickle.loads(pickle.dumps(ODD))
    assert there == ODD
    assert [case.hashes[0] for case in there] == hashes, "they need not be made again"
    assert [case.key for case in there] == [case.key for case in ODD]
