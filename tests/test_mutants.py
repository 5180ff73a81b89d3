"""Mutants: a constant changed or a condition dropped in a module is noticed by the tests of that module alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.torture, pytest.mark.child_process]
_moments = count(1_000_000_000)


class Mutant(NamedTuple):
    """A change of one place of a module, and the test file that mirrors it."""

    module: str
    tests: str
    before: str
    after: str


GATES = "gates.py", "test_gates.py"
AGGREGATE = "runs/aggregate.py", "runs/test_aggregate.py"
MATCHING = "matching.py", "test_matching.py"
KEY = "judges/cache/cache_key.py", "judges/test_judge_cache_key.py"
SIGN_FLIP = "stats/sign_flip.py", "stats/test_sign_flip.py"
INTERVALS = "stats/intervals.py", "stats/test_intervals.py"
AGREEMENT = "stats/agreement.py", "stats/test_agreement.py"
PASS_RATE = "stats/pass_rate.py", "stats/test_pass_rate.py"
POWER = "stats/power.py", "stats/test_power.py"
THRESHOLDS = "stats/thresholds.py", "stats/test_thresholds.py"
MUTANTS = {
    "a limit that is met no longer holds": Mutant(*GATES, '"<=": operator.le', '"<=": operator.lt'),
    "a percentage forgets where the scale begins": Mutant(*GATES, "return low + (high - low)", "return (high - low)"),
    "the end of a scale is beyond it": Mutant(
        *GATES, "not low <= resolved_gate.threshold <= high", "not low <= resolved_gate.threshold < high"
    ),
    "conditions of a gate are not asked": Mutant(*GATES, "return _holds(gate.when, case, kind) and not", "return not"),
    "a heuristic's score gates by default": Mutant(
        *GATES, "if judgement is not None and judgement.heuristic:", "if judgement is None:"
    ),
    "the first trial stands for the mean": Mutant(
        *GATES, "value = math.fsum(values) / len(values)", "value = values[0]"
    ),
    "gold that was looked at in part is unexamined": Mutant(
        *GATES, "missed = () if has_examined_gold else tuple(unexamined)", "missed = tuple(unexamined)"
    ),
    "gold that a gate is not meant for is unexamined": Mutant(
        *GATES,
        "return gate.name in trial.unobserved and is_meant_for(gate, obs.case, obs.matching.kind)",
        "return gate.name in trial.unobserved",
    ),
    "a formula gates beside a model": Mutant(
        *GATES, "return not any(looks_at(other, trial) for other in gate.yields_to)", "return True"
    ),
    "what is not applicable counts as an error": Mutant(
        *AGGREGATE, " and measure.name not in row.not_applicable\n", "\n"
    ),
    "an error counts as a case without a gate": Mutant(*AGGREGATE, ' and row.outcome != "error" for row', " for row"),
    "a skipped case counts as asked": Mutant(
        *AGGREGATE, 'if row.outcome != "skipped" or row.not_applicable', "if True"
    ),
    "a gate of the run holds without a value": Mutant(
        *AGGREGATE, "value is not None and gate.holds(value)", "value is None or gate.holds(value)"
    ),
    "lower is better, and is not turned": Mutant(
        *AGGREGATE, 'if better == "higher" else 1 - share', "if better else 0"
    ),
    "a prefix goes on with a hash only": Mutant(*MATCHING, 'in ("#", "-")', 'in ("#",)'),
    "a heading matches where it only begins alike": Mutant(
        *MATCHING,
        "passage_headings[: len(place.headings)] == place.headings",
        "passage_headings[:1] == place.headings[:1]",
    ),
    "a grade of zero makes a gold": Mutant(*MATCHING, "if grade > 0)", "if grade >= 0)"),
    "a text that was cut holds no doubt": Mutant(
        *MATCHING, "isinstance(source, Chunk) and source.text_truncated", "isinstance(source, Chunk) and False"
    ),
    "the trial is no part of the key": Mutant(*KEY, 'del parts["asked"]', 'del parts["asked"], parts["trial"]'),
    "other sampling is no difference": Mutant(
        *KEY, '"model", "sampling", "trial", "question",', '"model", "question",'
    ),
    "a question of any length is kept": Mutant(*KEY, "[:LONGEST_ASKED])[:LONGEST_ASKED]", ")"),
    "a negative trial is sound": Mutant(
        *KEY, "type(value) is int and 0 <= value", "type(value) is int and -9 <= value"
    ),
    "one side of a two-sided test": Mutant(*SIGN_FLIP, "min(1.0, 2 * share)", "min(1.0, share)"),
    "a step too few in the limit": Mutant(*SIGN_FLIP, "abs(excess) - 1 - total", "abs(excess) - total"),
    "the least p is forgotten": Mutant(*SIGN_FLIP, "least = min(least, p *", "least = min(1.0, p *"),
    "intervals of 90 %": Mutant(*INTERVALS, "LEVEL = 0.95", "LEVEL = 0.90"),
    "no further case at the end of the scale": Mutant(
        *INTERVALS, "_exact_quantile([*values, low], _TAIL)", "_exact_quantile(values, _TAIL)"
    ),
    "ties count for nothing": Mutant(*AGREEMENT, "before + (len(tied) + 1) / 2", "before + len(tied)"),
    "specificity of those that fail": Mutant(
        *AGREEMENT, "_share(self.tn, self.tn + self.fp)", "_share(self.tn, self.n)"
    ),
    "no case of either change is added": Mutant(
        *PASS_RATE, "(more + 1) / (n + 2), (less + 1) / (n + 2)", "more / n, less / n"
    ),
    "a power of a half": Mutant(*POWER, "inv_cdf(POWER)", "inv_cdf(0.5)"),
    "few cases are enough": Mutant(*POWER, "if n - differences.count(0) < FEWEST:", "if n < FEWEST:"),
    "too few labels are enough": Mutant(*THRESHOLDS, "FEWEST = 20", "FEWEST = 19"),
    "the first limit of many that are alike": Mutant(*THRESHOLDS, "alike[(len(alike) - 1) // 2]", "alike[0]"),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package, to be changed."""
    folder = tmp_path_factory.mktemp("mutants")
    shutil.copytree(ROOT / "pytest_rageval", folder / "pytest_rageval", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def outcome(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    """Run a test file of this project on the package in a folder."""
    # Not in the project's folder, where Python would find the package of the project first.
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-qx", "-p", "no:randomly", "-p", "no:cacheprovider",
         "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), str(ROOT / "tests" / tests)],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(folder), "THOROUGH": "0"},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


@pytest.fixture
def mutated(copy: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The copy with one place changed."""
    mutant: Mutant = request.param
    path = copy / "pytest_rageval" / mutant.module
    source = path.read_text(encoding="utf-8")
    assert source.count(mutant.before) == 1, (
        f"{mutant.before!r} is not, or not once, in {mutant.module}: choose another"
    )
    _write(path, source.replace(mutant.before, mutant.after))
    yield copy
    _write(path, source)


def _write(path: Path, source: str) -> None:
    path.write_text(source, encoding="utf-8")
    # A compiled file is that of a source of the same size and second, which two mutants of a module may be.
    moment = next(_moments)
    os.utime(path, (moment, moment))


@pytest.mark.parametrize("tests", sorted({mutant.tests for mutant in MUTANTS.values()}))
def test_the_copy_itself_passes(copy: Path, tests: str):
    done = outcome(copy, tests)
    assert done.returncode == pytest.ExitCode.OK, done.stdout


@pytest.mark.parametrize(
    ("mutated", "tests"), [(mutant, mutant.tests) for mutant in MUTANTS.values()], ids=MUTANTS, indirect=["mutated"]
)
def test_a_mutant_is_caught_by_the_tests_of_its_module(mutated: Path, tests: str):
    done = outcome(mutated, tests)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
