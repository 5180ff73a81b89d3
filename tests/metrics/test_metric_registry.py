"""Which metrics there are, what they declare, and what a name means."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from observations import answered

from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.gate import default_gates, resolve
from pytest_rageval.metrics import builtin_metrics, load_registry
from pytest_rageval.metrics.registry import Measure, metric, option_types
from pytest_rageval.model import NotApplicable, Observation, Score

BUILT_IN = {one.name: one for one in builtin_metrics()}


@metric(layer="L5", better="higher")
def politeness(obs: Observation) -> float:
    """1 if the answer says please."""
    return float("please" in (obs.answer.text or ""))


def installed(tmp_path, monkeypatch, code: str, value: str) -> None:
    """A package with one entry point of our group, as an installer would leave it."""
    (tmp_path / "their_metrics.py").write_text(code)
    info = tmp_path / "their_metrics-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-metrics\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rageval.metrics]\ntheirs = their_metrics:{value}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "their_metrics", raising=False)


THEIRS = """
from pytest_rageval.metrics.registry import metric

@metric(layer="L5", better="lower")
def length(obs):
    "Characters of the answer / 1000."
    return len(obs.answer.text) / 1000

both = [length]
"""


def test_default_gates_are_readable_and_name_their_own_metric():
    registry = load_registry()
    for gate in default_gates(registry):
        assert resolve(gate, registry, 5).measure is not None
        assert gate.tag


def test_options_are_known_with_their_types():
    assert set(option_types(BUILT_IN["token_f1"])) == {"normalizer", "hangul"}
    assert set(option_types(BUILT_IN["precision"])) == {"denominator"}
    assert not option_types(BUILT_IN["mrr"])


def test_a_name_takes_the_configured_cut_off_where_it_needs_one():
    registry = load_registry()
    names = [registry.measure(name, 7).name for name in ("recall", "recall@3", "mrr", "mrr@3", "map", "token_f1")]
    assert names == ["recall_any@7", "recall_any@3", "mrr", "mrr@3", "map@7", "token_f1"]


def test_a_metric_of_the_users_own_joins_the_others():
    registry = load_registry([politeness])
    assert registry.measure("politeness", 5)(answered("Yes, please.")).value == 1
    assert "politeness" not in load_registry()


def test_metrics_of_an_installed_package_join_too(tmp_path, monkeypatch):
    installed(tmp_path, monkeypatch, THEIRS, "both")
    assert load_registry()["length"].better == "lower"


def test_a_package_that_cannot_be_loaded_is_named(tmp_path, monkeypatch):
    installed(tmp_path, monkeypatch, "1 / 0", "both")
    with pytest.raises(SettingsError, match="entry point theirs = their_metrics:both: ZeroDivisionError"):
        load_registry()


def test_all_that_is_wrong_with_metrics_is_said_together(tmp_path, monkeypatch):
    installed(tmp_path, monkeypatch, THEIRS.replace("def length", "def mrr").replace("[length]", "[mrr, 3]"), "both")
    with pytest.raises(SettingsError) as caught:
        load_registry(["not a metric"])  # type: ignore[list-item]
    assert [problem.split(";")[0] for problem in caught.value.problems] == [
        "entry point theirs = their_metrics:both: metric 'mrr' is declared twice",
        "entry point theirs = their_metrics:both: 3 is not a metric",
        "'not a metric' is not a metric",
    ]


def giving(value, scale: tuple[float, float] = (0, 1)) -> Measure:
    """A measure whose metric gives this value."""

    @metric(layer="L5", better="higher", scale=scale, name="given")
    def given(obs: Observation):
        return value

    return Measure(given)


def test_a_score_without_detail_is_a_plain_number_where_many_are_scored():
    obs = answered("Yes.")
    assert giving(0.5).score(obs) == 0.5
    assert giving(0.5)(obs) == Score(0.5)
    assert giving(Score(1, {"why": "so"})).score(obs) == giving(Score(1, {"why": "so"}))(obs) == Score(1, {"why": "so"})
    assert giving(NotApplicable("no")).score(obs) == giving(NotApplicable("no"))(obs) == NotApplicable("no")


@pytest.mark.parametrize("value", [1, True, Score(1), Score(True)])
def test_whole_numbers_and_claims_become_numbers(value):
    scored = giving(value)(answered("Yes."))
    assert type(scored.value) is float
    assert scored.value == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1, 1.1, 2, Score(float("nan")), Score(-1)])
@pytest.mark.parametrize("call", [Measure.__call__, lambda measure, obs: measure.score(obs)])
def test_a_value_that_is_no_number_or_beyond_the_scale_is_an_error(value, call):
    with pytest.raises(ValueError, match=r"given is .*, outside its scale 0 to 1"):
        call(giving(value), answered("Yes."))


def test_an_open_scale_holds_numbers_only():
    assert giving(1e300, (0, float("inf")))(answered("Yes.")).value == 1e300
    with pytest.raises(ValueError, match="outside its scale"):
        giving(float("inf"), (0, float("inf")))(answered("Yes."))


@pytest.mark.parametrize("value", [None, "0.5", [1], Score("0.5")])  # type: ignore[arg-type]
def test_what_is_no_number_at_all_is_an_error_that_says_what_was_expected(value):
    with pytest.raises(ValueError, match="expected a number, a Score or NotApplicable"):
        giving(value)(answered("Yes."))


def test_options_and_cut_offs_are_bound_once():
    @metric(layer="L5", better="higher", scale=(0, 100))
    def bound(obs: Observation, k: int, *, times: int = 1):
        return k * times

    assert Measure(bound, 3)(answered("Yes.")).value == 3
    assert Measure(replace(bound, options={"times": 7}), 3)(answered("Yes.")).value == 21
