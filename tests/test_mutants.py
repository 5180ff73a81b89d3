"""Mutants: a constant changed or a condition dropped in a module is noticed by the tests of that module alone.

A mutant names the function (or the constant) and the expression in it, not a file and a line: both are looked for in
the syntax trees of the package, so that code which moves takes its mutants along.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pytest_rageval"
_moments = count(1_000_000_000)


class Mutant(NamedTuple):
    """An expression of one function, method or constant, what stands in its place, and the test file that notices."""

    place: str
    before: str
    after: str
    tests: str


class Site(NamedTuple):
    """Where an expression stands in a module, in bytes."""

    module: Path
    start: int
    end: int


GATES = "test_gates.py"
AGGREGATE = "test_aggregate.py"
MATCHING = "test_matching.py"
KEY = "test_cache_misses.py"
PAIRED = "test_paired_test.py"
RANKING = "test_sweep.py"
INTERVALS = "test_intervals.py"
AGREEMENT = "test_agreement.py"
PASS_RATE = "test_pass_rate.py"
POWER = "test_power.py"
FILTER = "test_case_filter.py"
REPLY = "test_reply.py"
END = "test_end_checks.py"
HIDDEN = "test_hidden_verdicts.py"
THRESHOLDS = "test_thresholds.py"
CACHED = "test_cached_judge.py"
MUTANTS = {
    "a limit that is met no longer holds": Mutant("HOLDS", "operator.le", "operator.lt", GATES),
    "a percentage forgets where the scale begins": Mutant(
        "Gate.threshold", "low + (high - low) * self.limit / 100", "(high - low) * self.limit / 100", GATES
    ),
    "the end of a scale is beyond it": Mutant(
        "resolve", "low <= resolved_gate.threshold <= high", "low <= resolved_gate.threshold < high", GATES
    ),
    "conditions of a gate are not asked": Mutant("is_meant_for", "_are_met(gate.when, case, kind)", "True", GATES),
    "a heuristic's score gates by default": Mutant(
        "looks_at", "judgement is not None and judgement.heuristic", "judgement is None", GATES
    ),
    "the first trial stands for the mean": Mutant(
        "gate_verdict", "math.fsum(values) / len(values)", "values[0]", GATES
    ),
    "gold that was looked at in part is unexamined": Mutant(
        "ending_by_gates", "gated.is_gold_examined or not gated.unexamined", "not gated.unexamined", GATES
    ),
    "gold that a gate is not meant for is unexamined": Mutant(
        "_misses", "is_meant_for(gate, obs.case, obs.matching.kind)", "True", GATES
    ),
    "a formula gates beside a model": Mutant(
        "looks_at", "any(looks_at(other, trial) for other in gate.yields_to)", "False", GATES
    ),
    "what is not applicable counts as an error": Mutant(
        "_CountedRows.errors", "name not in row.not_applicable", "True", AGGREGATE
    ),
    "an error counts as a case without a gate": Mutant(
        "Row.lacks_gate",
        "self.gates_examined == 0 and self.outcome != 'error' and (not self.is_small_talk)",
        "self.gates_examined == 0 and not self.is_small_talk",
        AGGREGATE,
    ),
    "a skipped case counts as asked": Mutant(
        "_facts", "row.outcome != 'skipped' or row.not_applicable", "True", AGGREGATE
    ),
    "a gate of the run holds without a value": Mutant(
        "run_gate_result", "value is not None and gate.holds(value)", "value is None or gate.holds(value)", AGGREGATE
    ),
    "lower is better, and is not turned": Mutant(
        "normalised", "share if better == 'higher' else 1 - share", "share", AGGREGATE
    ),
    "a prefix goes on with a hash only": Mutant("_IdGolds._called", "('#', '-')", "('#',)", MATCHING),
    "a heading matches where it only begins alike": Mutant(
        "_AnchorGolds._at",
        "passage_headings[: len(place.headings)] != place.headings",
        "passage_headings[:1] != place.headings[:1]",
        MATCHING,
    ),
    "a grade of zero makes a gold": Mutant("relevant_ids", "grade > 0", "grade >= 0", MATCHING),
    "a text that was cut holds no doubt": Mutant(
        "_AnchorGolds._quotes", "isinstance(source, Chunk) and source.text_truncated", "False", MATCHING
    ),
    "the trial is no part of the key": Mutant(
        "KeyParts.key", "parts['asked']", "(parts['asked'], parts['trial'])", KEY
    ),
    "other sampling is no difference": Mutant(
        "_COMPARED",
        "('rubric', 'prompt_version', 'model', 'sampling', 'trial', 'question', 'answer', 'contexts')",
        "('rubric', 'prompt_version', 'model', 'question', 'answer', 'contexts')",
        KEY,
    ),
    "one side of a two-sided test": Mutant(
        "PairedTest.p",
        "2 * min(self.p_towards(1), self.p_towards(-1))",
        "min(self.p_towards(1), self.p_towards(-1))",
        PAIRED,
    ),
    "an interval that is not that of its test": Mutant("FlipTest.limit", "mean / normal_quantile(p)", "error", PAIRED),
    "few changed cases are enough": Mutant("GradedTest.limit", "self._least_p > level", "False", PAIRED),
    "the level of a single test for many": Mutant("level_among", "max(1, len(adjusted_p))", "1", PAIRED),
    "a fall is never distinguishable": Mutant(
        "Gain.is_distinguishable", "not self.ci[0] <= 0 <= self.ci[1]", "0 < self.ci[0]", RANKING
    ),
    "whatever has an interval is distinguishable": Mutant(
        "Gain.is_distinguishable", "not self.ci[0] <= 0 <= self.ci[1]", "True", RANKING
    ),
    "whatever moved is distinguishable": Mutant(
        "Gain.is_distinguishable", "not self.ci[0] <= 0 <= self.ci[1]", "self.delta != 0", RANKING
    ),
    "an interval that ends at 0 shows a change of a sweep's point": Mutant(
        "Gain.is_distinguishable", "self.ci[0] <= 0 <= self.ci[1]", "self.ci[0] < 0 < self.ci[1]", RANKING
    ),
    "intervals of 90 %": Mutant("LEVEL", "0.95", "0.90", INTERVALS),
    "ties count for nothing": Mutant("_ranks", "before + (len(tied) + 1) / 2", "before + len(tied)", AGREEMENT),
    "specificity of those that fail": Mutant(
        "Confusion.specificity", "_share(self.tn, self.tn + self.fp)", "_share(self.tn, self.n)", AGREEMENT
    ),
    "no case of either change is added": Mutant("paired_difference", "(more + 1) / n_adjusted", "more / n", PASS_RATE),
    "words are looked for as they are spelt": Mutant("CaseFilter._test", "value.lower()", "value", FILTER),
    "a term with a minus asks for what it leaves out": Mutant(
        "CaseFilter.numbers", "meets(number) != term.is_negated", "meets(number)", FILTER
    ),
    "a score beyond the scale is one": Mutant("_score", "lowest <= number <= highest", "True", REPLY),
    "a run without all results is complete": Mutant("run_problems", "lost and not extent.is_ended_early", "False", END),
    "a run of which no case was examined is fine": Mutant(
        "run_problems", "rows and len(unexamined) == len(rows)", "False", END
    ),
    "a written gate that measured nothing passes": Mutant(
        "_unmeasured", "any(is_meant_for(meant, *labelled_case(each)) for each in groups.values())", "True", END
    ),
    "what pytest did not count is counted": Mutant("_uncounted", "not is_counted and not is_cut_off", "False", HIDDEN),
    "a report that a hook made harmless decides": Mutant(
        "_records_of_item", "outcome in HARMLESS and case.result.outcome not in HARMLESS", "False", HIDDEN
    ),
    "calls that failed in different ways end the run": Mutant(
        "OngoingRun.count", "len(kinds) == 1", "True", "test_calls_in_flight.py"
    ),
    "a part of the cases becomes the baseline": Mutant(
        "refusal_of_baseline", "metrics['partial']", "False", "test_baseline.py"
    ),
    "the shortest secret is shown": Mutant(
        "Mask.__init__", "len(secret) >= SHORTEST_SECRET", "len(secret) > SHORTEST_SECRET", "test_masking.py"
    ),
    "a line that was changed is read": Mutant(
        "check_seal",
        "b'%08x' % crc32(memoryview(line)[:start]) != line[start + len(_KEY) : end - len(_END)]",
        "False",
        "test_sealed_lines.py",
    ),
    "few cases are enough": Mutant("detectable_mean", "n - differences.count(0) < FEWEST", "n < FEWEST", POWER),
    "too few labels are enough": Mutant("FEWEST", "20", "19", THRESHOLDS),
    "a number in a reply may be off its scale": Mutant("number_of", "low <= number <= high", "True", REPLY),
    "full marks in a reply are off the scale": Mutant(
        "number_of", "low <= number <= high", "low <= number < high", REPLY
    ),
    "a score of a judge may be off its scale": Mutant("judgement_problem", "low <= score <= high", "True", CACHED),
    "full marks of a judge are off the scale": Mutant(
        "judgement_problem", "low <= score <= high", "low <= score < high", CACHED
    ),
    "the first limit of many that are alike": Mutant("_best", "alike[(len(alike) - 1) // 2]", "alike[0]", THRESHOLDS),
}


@cache
def _sites(place: str, expression: str) -> tuple[Site, ...]:
    """Return every place of the package where the named definition holds this expression."""
    wanted = ast.unparse(ast.parse(expression, mode="eval").body)
    return tuple(
        Site(path.relative_to(ROOT), *_extent(path, node))
        for path, name, definition in _definitions()
        if name == place
        for node in ast.walk(definition)
        if isinstance(node, ast.expr) and ast.unparse(node) == wanted
    )


@cache
def _definitions() -> tuple[tuple[Path, str, ast.AST], ...]:
    return tuple(
        (path, name, node)
        for path in sorted(PACKAGE.rglob("*.py"))
        for name, node in _named(ast.parse(path.read_bytes()), "")
    )


def _named(parent: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield functions, methods and constants below a module or class, by qualified name."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.ClassDef):
            yield from _named(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield prefix + ast.unparse(target), node


def _extent(path: Path, node: ast.expr) -> tuple[int, int]:
    starts = [0]
    for line in path.read_bytes().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def _test_file(name: str) -> Path:
    (found,) = (ROOT / "tests").rglob(name)
    return found


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package, to be changed."""
    folder = tmp_path_factory.mktemp("mutants")
    shutil.copytree(PACKAGE, folder / "pytest_rageval", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def outcome(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    """Run a test file of this project on the package in a folder."""
    # Not in the project's folder, where Python would find the package of the project first.
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-qx", "-p", "no:randomly", "-p", "no:cacheprovider",
         "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), str(_test_file(tests))],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(folder), "THOROUGH": "0", "PYTEST_ADDOPTS": ""},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


@pytest.fixture
def mutated(copy: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The copy with one expression changed."""
    mutant: Mutant = request.param
    (site,) = _sites(mutant.place, mutant.before)
    path = copy / site.module
    source = path.read_bytes()
    _write(path, source[: site.start] + f"({mutant.after})".encode() + source[site.end :])
    yield copy
    _write(path, source)


def _write(path: Path, source: bytes) -> None:
    path.write_bytes(source)
    # A compiled file is that of a source of the same size and second, which two mutants of a module may be.
    moment = next(_moments)
    os.utime(path, (moment, moment))


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_has_one_place_in_the_package(mutant: Mutant):
    sites = _sites(mutant.place, mutant.before)
    assert len(sites) == 1, f"{mutant.before!r} stands {len(sites)} times in {mutant.place}: name it anew"
    assert _test_file(mutant.tests)


@pytest.mark.torture
@pytest.mark.child_process
@pytest.mark.parametrize("tests", sorted({mutant.tests for mutant in MUTANTS.values()}))
def test_the_copy_itself_passes(copy: Path, tests: str):
    done = outcome(copy, tests)
    assert done.returncode == pytest.ExitCode.OK, done.stdout


@pytest.mark.torture
@pytest.mark.child_process
@pytest.mark.parametrize(
    ("mutated", "tests"), [(mutant, mutant.tests) for mutant in MUTANTS.values()], ids=MUTANTS, indirect=["mutated"]
)
def test_a_mutant_is_caught_by_the_tests_of_its_module(mutated: Path, tests: str):
    done = outcome(mutated, tests)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
