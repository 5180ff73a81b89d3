"""Builders of small observations, each in one line, for worked examples and experiments.

The docstrings of metrics and the page of metrics hold examples with these builders; both run as tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from pytest_rageval.assertions.reading import read_assertions
from pytest_rageval.io.messages import Findings
from pytest_rageval.matching.places import observe
from pytest_rageval.metrics.builtin import builtin_metrics
from pytest_rageval.metrics.ontology.claims import Validator
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.model import (
    Anchor,
    Answer,
    CaseTrials,
    Chunk,
    ConversationScores,
    Dialogue,
    Edge,
    Entity,
    EvalCase,
    FolderSelection,
    Gold,
    Judgement,
    NotApplicable,
    Observation,
    Reference,
    RewrittenFollowUp,
    RunFacts,
    ScorePair,
    Timings,
    ToolCall,
    Trace,
    Turn,
)
from pytest_rageval.model.expected_tool import ExpectedTool, ToolsMatch

Rule = Literal["cite_newer", "acknowledge_both", "cite_both"]
Traced = Literal["entities", "concepts", "constraints", "kg_entities", "kg_edges"]


def score(name: str, obs: Observation | RunFacts, k: int = 5, **options: Any) -> float | NotApplicable:
    """Return the value of a metric by name, or why it has none."""
    measure = Registry(builtin_metrics()).measure(name, k)
    score = replace(measure, metric=replace(measure.metric, options=options))(obs)
    return score if isinstance(score, NotApplicable) else score.value


def asserted(text: str, *written: Mapping[str, Any]) -> Observation:
    """Return an answer to a case with these assertions."""
    findings = Findings()
    assertions = read_assertions(written, findings)
    assert not findings, findings.first
    return observe(replace(_case(Gold()), assertions=assertions), Answer(text=text))


def called_tools(
    calls: str,
    *,
    expected: str | None = None,
    forbidden: str = "",
    match: ToolsMatch | None = None,
    most: int | None = None,
) -> Observation:
    """Return the tools that an agent called, in order, each by its name; `pay!` failed."""
    made = [ToolCall(name.rstrip("!"), error="it failed" if name.endswith("!") else None) for name in calls.split()]
    tools = None if expected is None else tuple(map(ExpectedTool, expected.split()))
    case = replace(
        _case(Gold()),
        expected_tools=tools,
        tools_match=match,
        forbidden_tools=tuple(forbidden.split()),
        max_tool_calls=most,
    )
    return observe(case, Answer("So it is.", tool_calls=tuple(made)))


def agent_searched(*searches: str, gold: str = "") -> Observation:
    """Return the chunks of each search of an agent, in order; equal searches ask the same."""
    calls = []
    for search in searches:
        chunks = tuple(Chunk(name, rel_path=name) for name in search.split())
        calls.append(ToolCall("search", {"query": search}, retrieved_chunks=chunks))
    labelled = Gold(chunk_ids=tuple(gold.split()), ids_are_prefixes=True)
    return observe(_case(labelled), Answer("So it is.", tool_calls=tuple(calls)))


def retrieved(
    chunk_names: str | None,
    gold: str = "",
    *,
    irrelevant: str = "",
    groups: tuple[tuple[int, ...], ...] | None = None,
    category: str | None = None,
    asked: int | None = None,
) -> Observation:
    """Return retrieved chunks, in order, and golds, each by a name; `a#2` is a part of document `a`.

    Golds are ids (prefixes), or with `groups` anchors. `chunk_names` is None if the system does not report what it
    retrieved.
    """
    names = tuple(gold.split())
    irrelevant_ids = tuple(irrelevant.split()) or None
    labelled = Gold(chunk_ids=names, irrelevant_ids=irrelevant_ids, ids_are_prefixes=True)
    if groups:
        labelled = Gold(
            supports=tuple(map(Anchor, names)),
            support_groups=groups,
            irrelevant_ids=irrelevant_ids,
            ids_are_prefixes=True,
        )
    chunks: tuple[Chunk, ...] | None = None
    if chunk_names is not None:
        chunks = tuple(Chunk(name, rel_path=name.partition("#")[0]) for name in chunk_names.split())
    return observe(_case(labelled, category=category), Answer(chunks=chunks), asked_k=asked)


def cited(
    references: str | None, gold: str, *, rule: Rule | None = None, text: str = "So it is.", abstained: bool = False
) -> Observation:
    """Return places that an answer cites, and gold places, each by a name, a gold with its date after a colon."""
    golds = [place.partition(":") for place in gold.split()]
    places = tuple(Anchor(path, date=date or None) for path, _, date in golds)
    names = None if references is None else tuple(Reference(rel_path=name) for name in references.split())
    labelled = Gold(supports=places, recency_conflict_rule=rule)
    return observe(_case(labelled), Answer(text, references=names, abstained=abstained))


def searched(folders: str, gold: str, mode: str = "on") -> Observation:
    """Return the folders that the system chose to search, and the paths of gold places."""
    labelled = Gold(supports=tuple(map(Anchor, gold.split())))
    answer = Answer("So it is.", folder_selection=FolderSelection(tuple(folders.split())))
    return observe(_case(labelled), answer, params={"folder_mode": mode})


def answered(
    text: str,
    *golds: str,
    facts: Iterable[str] = (),
    answerable: bool = True,
    abstained: bool | None = None,
) -> Observation:
    """Return an answer, and the answers any of which is right."""
    labelled = Gold(answers=golds or None, key_facts=tuple(facts) or None)
    return observe(_case(labelled, answerable=answerable), Answer(text, abstained=abstained))


def traced(kind: Traced, reported: str, gold: str) -> Observation:
    """Return a trace with names under one of its keys, and the expected ones, each by names without spaces."""
    read: Mapping[str, Callable[[str], Any]] = {"entities": Entity, "kg_edges": Edge.parse}
    named: dict[str, Any] = {kind: tuple(map(read.get(kind, str), reported.split()))}
    expected = tuple(map(Edge.parse if kind == "kg_edges" else str, gold.split()))
    labelled: dict[str, Any] = {"kg_entities" if kind == "entities" else kind: expected}
    return observe(_case(Gold(**labelled)), Answer("So it is.", trace=Trace(**named)))


def inferred(inferences: str, types: str = "", violations: Iterable[str] | None = None) -> Observation:
    """Return inferences of a system, the types of its entities (`name:Type`), and the violations it reports itself."""
    edges = tuple(Edge.parse(edge)._asdict() for edge in inferences.split())
    kinds: dict[str, list[str]] = {}
    for name, _, kind in (entity.partition(":") for entity in types.split()):
        kinds.setdefault(name, []).append(kind)
    reported = None if violations is None else tuple(violations)
    trace = Trace(inferences=edges, entity_types=kinds, violations=reported)
    return observe(_case(Gold()), Answer("So it is.", trace=trace))


def ontology(toml: str) -> Validator:
    """Return the validator of an ontology written as TOML."""
    from pytest_rageval.metrics.ontology.declared import DeclaredValidator

    return DeclaredValidator("example.toml", toml)


def judged(
    metric: str,
    value: float | Mapping[str, float],
    scale: tuple[float, float],
    *,
    abstained: bool = False,
    gold: str | None = None,
    sources: str = "a",
) -> Observation:
    """Return an answer from these documents, scored by one rubric; `value` by metric if the rubric fills several."""
    scores = value if isinstance(value, Mapping) else {metric: value}
    chunks = tuple(Chunk(name, rel_path=name, text="So it is.") for name in sources.split())
    labelled = Gold(answers=(gold,)) if gold else Gold()
    answer = Answer("So it is.", abstained=abstained, chunks=chunks)
    return observe(_case(labelled), answer, judgements={metric: Judgement(metric, scores, scale)})


def judged_conversation(metric: str, value: float, outcome: str | None = None) -> Observation:
    """Return the last turn of a conversation with this outcome, judged as a whole by one rubric."""
    case = replace(
        _case(Gold()),
        conversation="example",
        turn=2,
        is_last=True,
        expected_outcome=outcome,
    )
    said = Dialogue("example", (Turn("user", "I have a dog and a cat."), Turn("assistant", "So it is.")))
    judgements = {metric: Judgement(metric, {metric: value})}
    return replace(observe(case, Answer("So it is."), judgements=judgements), dialogue=said)


def called(
    latency_ms: float | None = None,
    *,
    requests: int | None = None,
    latency: Mapping[str, float] | None = None,
    usage: Mapping[str, Any] | None = None,
) -> Observation:
    """Return an answer with the time that it took, and with the times and the usage that the system reports."""
    answer = Answer("So it is.", latency=latency or {}, usage=usage or {})
    return observe(_case(Gold()), answer, timings=Timings(ask_ms=latency_ms, requests=requests))


def a_run(asked: int = 8, failed: int = 0, timed_out: int = 0, blank: int = 0, **facts: Any) -> RunFacts:
    """Return the facts of a run."""
    return RunFacts(asked, failed, timed_out, blank, **facts)


def passing_trials(*cases: str) -> tuple[CaseTrials, ...]:
    """Return the trials of some cases, each written as `++-`: a plus for a trial that passes."""
    return tuple(CaseTrials(case.count("+"), case.count("-"), len(case)) for case in cases)


def conversations(passed: Iterable[bool] = (), **scores: Iterable[tuple[float, ...]]) -> tuple[ConversationScores, ...]:
    """Return conversations by whether they pass, or by the scores of their turns in a metric, the first turn first."""
    made = [ConversationScores(each) for each in passed]
    for name, turns in scores.items():
        for first, *later in turns:
            made.append(ConversationScores(True, {name: [first]}, {name: later} if later else {}))
    return tuple(made)


def follow_ups(**scores: Iterable[tuple[float, float]]) -> tuple[RewrittenFollowUp, ...]:
    """Return follow-ups by their scores in a metric: as the rewrite, and in conversation."""
    made: list[RewrittenFollowUp] = []
    for name, pairs in scores.items():
        for number, pair in enumerate(pairs):
            made.append(RewrittenFollowUp(f"talk{number}", {name: ScorePair(*pair)}))
    return tuple(made)


def _case(gold: Gold, **fields: Any) -> EvalCase:
    return EvalCase("example", "What is it?", gold=gold, **fields)
