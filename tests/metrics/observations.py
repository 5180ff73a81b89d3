"""Small observations for the tests of metrics, and the judged rankings and answers under tests/data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from pytest_rageval.matching.places import observe
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.registry import Measure
from pytest_rageval.model import Anchor, Answer, Chunk, EvalCase, Gold, Judgement, NotApplicable, Observation, Trace

DATA = Path(__file__).parent.parent / "data"
REGISTRY = load_registry()


def score(name: str, obs: Observation, **options: Any) -> float | str:
    """The value of a metric by name (k is 5 unless written), or the reason why it has none."""
    measure = REGISTRY.measure(name, k=5)
    scored = Measure(replace(measure.metric, options=options), measure.k)(obs)
    return scored.reason if isinstance(scored, NotApplicable) else scored.value


Expected = float | str | NotApplicable
Rows = Mapping[str, tuple[str, Any, Any]]


def scores(rows: Rows) -> pytest.MarkDecorator:
    """Parametrize a test by sentences: the metric, the observation, and the value or why there is none."""
    return pytest.mark.parametrize(("name", "obs", "expected"), rows.values(), ids=rows)


def assert_score(name: str, obs: Observation, expected: Expected, **options: Any) -> None:
    reason = expected.reason if isinstance(expected, NotApplicable) else expected
    assert score(name, obs, **options) == (reason if isinstance(reason, str) else pytest.approx(reason))


def ranked(*names: str) -> tuple[Chunk, ...]:
    return tuple(Chunk(chunk_id=name) for name in names)


def retrieved(came: Sequence[str] | None, wanted: Sequence[str], **case: Any) -> Observation:
    """Chunks by id against golds by id."""
    gold = Gold(chunk_ids=tuple(wanted), **case.pop("gold", {}))
    return observe(a_case(gold=gold, **case), Answer(chunks=None if came is None else ranked(*came)))


def a_case(**fields: Any) -> EvalCase:
    return EvalCase(**({"id": "q1", "question": "What?"} | fields))


def answered(text: str | None, *, answerable: bool = True, abstained: bool | None = None, **gold: Any) -> Observation:
    return observe(a_case(answerable=answerable, gold=Gold(**gold)), Answer(text, abstained=abstained))


def traced(trace: Trace | None, **gold: Any) -> Observation:
    return observe(a_case(gold=Gold(**gold)), Answer("Yes.", trace=trace))


def judged(obs: Observation, name: str, value: float, scale: tuple[float, float] = (0, 1)) -> Observation:
    return replace(obs, judgements={**obs.judgements, name: Judgement(name, {name: value}, scale=scale)})


def lines(path: str) -> Iterator[dict[str, Any]]:
    with (DATA / path).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def judged_ranking(name: str, gold_by: Literal["anchors", "ids"]) -> Iterator[tuple[Observation, dict[str, float]]]:
    """Every query of a set under data/retrieval, with the figures of trec_eval."""
    expected = json.loads((DATA / f"retrieval/{name}.expected.json").read_text(encoding="utf-8"))["per_query"]
    came = {line["id"]: line["retrieved_chunks"] for line in lines(f"retrieval/{name}.system_outputs.jsonl")}
    for line in lines(f"retrieval/{name}.cases.jsonl"):
        supports = tuple(Anchor(one["rel_path"], one["heading_path"]) for one in line["gold_supports"])
        gold = Gold(chunk_ids=tuple(line["gold"]["doc_chunk_ids"]), supports=supports)
        answer = Answer(chunks=tuple(Chunk(**chunk) for chunk in came[line["id"]]))
        obs = observe(a_case(id=line["id"], gold=gold), answer, gold_by=gold_by)
        yield obs, expected[line["id"].removeprefix(f"{name}-")]
