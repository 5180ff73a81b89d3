"""What does scoring retrieval cost? All L2 metrics over queries with ten chunks each, beside pytrec_eval."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from harness import Figure, Row, Scale, measure_inside

if TYPE_CHECKING:
    from pytest_rageval.metrics.registry import Measure
    from pytest_rageval.model import Answer, EvalCase, Observation

QUERIES = 100_000
CHUNKS = 10
ROUNDS = 5
GOLDS = 3
MEASURES = {"success_5", "recall_5", "P_5", "recip_rank", "ndcg_cut_5", "map_cut_5"}
"""What pytrec_eval scores."""
SAME = ("recall_any", "context_recall", "precision", "mrr", "ndcg", "map")
"""The same by our names."""


def rows(scale: Scale) -> Iterator[Row]:
    """Microseconds of CPU a query; what goes in is built beforehand on both sides."""
    found = measure_inside("retrieval_metrics", queries=scale.cases(QUERIES), rounds=scale.rounds(ROUNDS))
    peer = Figure.of(found["peer"]) if found["peer"] else None
    name = "pytrec_eval" if peer else ""
    yield Row(f"all {found['metrics']} L2 metrics, a query: CPU", "µs", Figure.of(found["scored"]), goal=8)
    yield Row(f"the {len(SAME)} that pytrec_eval has, a query: CPU", "µs", Figure.of(found["same"]), name, peer)
    yield Row("matching chunks with golds by id, a query: CPU", "µs", Figure.of(found["matched"]))


def inside(queries: int, rounds: int) -> dict[str, Any]:
    """Microseconds a query by rounds; runs in a process of its own."""
    from pytest_rageval.metrics import load_registry
    from pytest_rageval.model import Answer, Chunk, EvalCase, Gold

    registry = load_registry()
    measures = [registry.measure(one.name, 5) for one in registry if one.layer == "L2"]
    chunks = {name: Chunk(chunk_id=name) for name in (f"c{number}" for number in range(1000))}
    asked = [
        (EvalCase(f"q{number}", "?", gold=Gold(chunk_ids=golds)), Answer(chunks=tuple([chunks[name] for name in came])))
        for number, (came, golds) in enumerate(_rankings(queries))
    ]
    told: dict[str, Any] = {
        "metrics": len(measures),
        "peer": _peer(queries, rounds),
        "matched": [],
        "scored": [],
        "same": [],
    }
    same = [measure for measure in measures if measure.metric.name in SAME]
    for _ in range(rounds):
        observed: list[Observation] = []
        told["matched"].append(_cpu_us(partial(_match, asked, observed)) / queries)
        told["scored"].append(_cpu_us(partial(_score, measures, observed)) / queries)
        told["same"].append(_cpu_us(partial(_score, same, observed)) / queries)
    return told


def _match(asked: list[tuple[EvalCase, Answer]], observed: list[Observation]) -> None:
    from pytest_rageval.matching.places import observe

    observed.extend([observe(*one) for one in asked])


def _score(measures: list[Measure], observed: list[Observation]) -> None:
    for obs in observed:
        for measure in measures:
            measure.score(obs)


def _peer(queries: int, rounds: int) -> list[float]:
    try:
        import pytrec_eval
    except ImportError:
        return []
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, int]] = {}
    for number, (came, golds) in enumerate(_rankings(queries)):
        run[f"q{number}"] = {name: float(-rank) for rank, name in enumerate(came)}
        qrels[f"q{number}"] = dict.fromkeys(golds, 1)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, MEASURES)
    return [_cpu_us(lambda: evaluator.evaluate(run)) / queries for _ in range(rounds)]


def _rankings(queries: int) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    """Ten names that came and three golds for each query, most of which are among them."""
    chance = random.Random(7)
    for _ in range(queries):
        came = [f"c{number}" for number in chance.sample(range(1000), CHUNKS)]
        golds = {*chance.sample(came, GOLDS - 1), f"c{chance.randrange(1000)}"}
        yield came, tuple(sorted(golds))


def _cpu_us(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1e6
