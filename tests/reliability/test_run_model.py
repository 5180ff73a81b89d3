"""Runs, kills, resumes, shards, merges, new scores, baselines and deletions in any order, against a model of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from kill_points import Killing
from processes import rounds
from project import StoredProject, a_case, rageval
from reliability import Tally
from run_invariants import check_files, check_one_record_a_case, strict, whole_lines

from pytest_rageval.web.run_shelf import RunShelf
from pytest_rageval.web.site import Site

pytestmark = pytest.mark.child_process

NUMBERS = range(4)
CASES = [a_case(str(number), f"boiling {number}") for number in NUMBERS]
BOT = """
import bot
from pathlib import Path

def answer(question):
    with open("asked.txt", "a") as file:
        file.write(question[-1] + "\\n")
    if question[-1] in Path("worse").read_text():
        return {"answer": "", "abstained": True, "debug": {"retrieved_chunks": []}}
    return bot.answer(question)
"""
TABLE = 'target = "changing:answer"\nconcurrency = 1\nlook_ahead = 1\nconfirm = 0'
POINTS = (
    "rename config.json 1",
    "write observations.jsonl 1",
    "write results.jsonl 1",
    "write observations.jsonl 3",
    "write results.jsonl 3",
    "rename config.json 2",
    "rename scores.jsonl 1",
    "rename metrics.json 1",
    "rename metrics.json 2",
    "rename report.html 1",
    "rename baseline.json 1",
)
Outcomes = dict[str, str]
_worse = st.sets(st.sampled_from(NUMBERS), max_size=2)
_accepts = st.booleans()


class Runs(RuleBasedStateMachine):
    """A project whose bot changes, and what its runs and its baseline must hold."""

    tally: Tally

    def __init__(self) -> None:
        super().__init__()
        self._exits = contextlib.ExitStack()
        self.folder = Path(self._exits.enter_context(tempfile.TemporaryDirectory()))
        self.project = StoredProject.new(self.folder / "project", CASES, TABLE)
        self.project.write("changing.py", BOT)
        self._exits.enter_context(contextlib.chdir(self.project.path))
        self.reports = self.project.path / "reports"
        self.killing = Killing(self.reports, self.folder)
        site = SimpleNamespace(settings=SimpleNamespace(data=self.folder / "data"), runs=self.reports / "runs")
        self.shelf = RunShelf(cast("Site", site))
        self.number = 0
        self.whole: dict[str, Outcomes] = {}
        """The outcomes of the runs that have ended, by id."""
        self.dead: list[str] = []
        """Runs that were killed and can be resumed."""
        self.deleted: dict[str, Outcomes] = {}
        self.baseline: Outcomes | None = None
        self.change_the_bot(set())

    def teardown(self) -> None:
        self._exits.close()

    # ── the model ─────────────────────────────────────────────────────────────────────────────────────────────

    def new_id(self) -> str:
        self.number += 1
        return f"r{self.number}"

    def expected(self, run_id: str = "") -> Outcomes:
        """Return the outcomes of a run now; of one that has begun, of what is not on disk yet."""
        outcomes = {number: "failed" if number in self.worse else "passed" for number in map(str, NUMBERS)}
        for line in self.lines(run_id, "observations.jsonl") if run_id else ():
            outcomes[line["case"]["id"]] = "failed" if line["answer"]["abstained"] else "passed"
        return outcomes

    def lines(self, run_id: str, name: str) -> list[dict[str, Any]]:
        path = self.reports / "runs" / run_id / name
        return list(whole_lines(path)) if path.exists() else []

    def call(self, *words: str, code: int) -> None:
        ended = rageval(self.project.path, *words)
        assert ended.returncode == code, ended.stdout + ended.stderr

    def asked(self) -> Counter[str]:
        path = self.project.path / "asked.txt"
        return Counter(path.read_text().split()) if path.exists() else Counter()

    # ── what may happen ───────────────────────────────────────────────────────────────────────────────────────

    @rule(worse=_worse)
    def change_the_bot(self, worse: set[int]) -> None:
        self.worse = "".join(map(str, sorted(worse)))
        self.project.write("worse", self.worse)

    @rule(accepts=_accepts)
    def run(self, accepts: bool) -> None:
        run_id = self.new_id()
        outcomes = self.expected()
        self.call("run", "--run-id", run_id, *accepting(accepts), code=failing(outcomes))
        self.whole[run_id] = outcomes
        if accepts:
            self.baseline = outcomes

    @rule(point=st.sampled_from(POINTS), accepts=_accepts)
    def run_and_die(self, point: str, accepts: bool) -> None:
        run_id = self.new_id()
        self.tally.tried()
        code = self.killing.run(point, "rageval", "run", "--run-id", run_id, *accepting(accepts))
        if code != -9:  # only a run that is accepted writes a baseline
            assert (point, accepts) == ("rename baseline.json 1", False), self.killing.output
            self.whole[run_id] = self.expected()
        elif (self.reports / "runs" / run_id / "config.json").exists():
            self.dead.append(run_id)
        else:
            shutil.rmtree(self.reports / "runs" / run_id)

    @precondition(lambda self: self.dead)
    @rule(accepts=_accepts, data=st.data())
    def resume(self, accepts: bool, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(self.dead))
        outcomes = self.expected(run_id)
        on_disk = {line["case"]["id"] for line in self.lines(run_id, "observations.jsonl")}
        before = self.asked()
        self.call("run", "--resume", run_id, *accepting(accepts), code=failing(outcomes))
        assert self.asked() - before == Counter({*map(str, NUMBERS)} - on_disk)
        self.dead.remove(run_id)
        self.whole[run_id] = outcomes
        if accepts:
            self.baseline = outcomes

    @rule(accepts=_accepts)
    def divide_and_merge(self, accepts: bool) -> None:
        run_id = self.new_id()
        outcomes = self.expected()
        for number in ("1", "2"):
            rageval(self.project.path, "run", "--shard", f"{number}/2", "--run-id", f"{run_id}-{number}")
        self.call(
            "merge", f"{run_id}-1", f"{run_id}-2", "--run-id", run_id, *accepting(accepts), code=failing(outcomes)
        )
        for number in ("1", "2"):
            shutil.rmtree(self.reports / "runs" / f"{run_id}-{number}")
        self.whole[run_id] = outcomes
        if accepts:
            self.baseline = outcomes

    @precondition(lambda self: self.whole)
    @rule(data=st.data(), verb=st.sampled_from(["score", "gate"]))
    def decide_again(self, data: st.DataObject, verb: str) -> None:
        run_id = data.draw(st.sampled_from(sorted(self.whole)))
        before = [line["scores"] for line in self.lines(run_id, "results.jsonl")]
        self.call(verb, run_id, code=failing(self.whole[run_id]))
        assert [line["scores"] for line in self.lines(run_id, "results.jsonl")] == before

    @precondition(lambda self: self.whole)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(sorted(self.whole)))
        self.shelf.delete([run_id])
        self.deleted[run_id] = self.whole.pop(run_id)

    @precondition(lambda self: self.deleted)
    @rule()
    def restore(self) -> None:
        self.shelf.restore(list(self.deleted))
        self.whole |= self.deleted
        self.deleted = {}

    # ── what must hold ────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def all_files_can_be_read(self) -> None:
        check_files(self.reports)

    @invariant()
    def runs_hold_their_outcomes(self) -> None:
        for run_id, outcomes in self.whole.items():
            run = self.reports / "runs" / run_id
            check_one_record_a_case(run, len(CASES))
            assert {line["test_case_id"]: line["outcome"] for line in self.lines(run_id, "results.jsonl")} == outcomes
            counts = strict((run / "metrics.json").read_bytes())["outcomes"]
            assert {name: count for name, count in counts.items() if count} == Counter(outcomes.values())

    @invariant()
    def the_baseline_is_what_was_accepted(self) -> None:
        path = self.reports / "baseline.json"
        assert path.exists() == (self.baseline is not None)
        if self.baseline is not None:
            cases = strict(path.read_bytes())["cases"]
            assert {key.rpartition("::")[2]: case["outcome"] for key, case in cases.items()} == self.baseline


def accepting(accepts: bool) -> tuple[str, ...]:
    return ("--update-baseline",) if accepts else ()


def failing(outcomes: Outcomes) -> int:
    return int("failed" in outcomes.values())


@pytest.mark.reliability("crashes", "any order of runs, kills, resumes, merges and baselines", costs="false green")
def test_runs_and_their_baseline_are_those_of_the_model(tally: Tally):
    steps = settings(max_examples=rounds(40, 3), stateful_step_count=rounds(16, 9))
    with mock.patch.object(Runs, "tally", tally, create=True), mock.patch.dict(os.environ):
        run_state_machine_as_test(Runs, settings=steps)
