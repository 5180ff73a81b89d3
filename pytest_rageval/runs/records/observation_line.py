"""Observations of one trial as lines of observations.jsonl: all that re-scoring and re-judging need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypeAliasType, TypedDict

from pytest_rageval.cases.canonical import case_from_mapping, case_to_mapping
from pytest_rageval.cases.conversations import as_rewrite
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.masking import Mask, public_params
from pytest_rageval.io.sealed_lines import sealed_line
from pytest_rageval.matching.dialects import PlaceRules
from pytest_rageval.matching.places import GoldBy, match
from pytest_rageval.model import (
    Answer,
    Chunk,
    Dialogue,
    EvalCase,
    Judgement,
    LooseMatch,
    Matching,
    Observation,
    Problem,
    Reference,
    Timings,
    Trial,
    Turn,
)
from pytest_rageval.run.scoring import AskFailure, Observed
from pytest_rageval.runs.case_place import own_test
from pytest_rageval.runs.records.line_form import OBSERVATIONS, REPEATS_CREDENTIAL, SCHEMA
from pytest_rageval.targets.native_contract import answer_from_line, answer_to_response

NO_SECRETS = Mask(())
_WRITTEN_BY_USERS = ("case", "params", "dialogue", "rewrite")
"""The members that may hold texts of the user: a case, a parameter, an earlier question."""

# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def observation_line(trial: Trial, observed: Observed, settings: Settings, mask: Mask = NO_SECRETS) -> bytes:
    """Return one line of observations.jsonl: all that re-scoring and re-judging need.

    The answer was masked when it was received; `mask` is for the case and the parameters. Raise ValueError or
    TypeError if JSON cannot hold it.
    """
    record = _observation(trial, observed, settings)
    for name in _WRITTEN_BY_USERS:
        if name in record:
            record[name] = mask.value(record[name])
    return sealed_line(record, partial(_WRITER.dump_json, **_AS_WRITTEN))


def observation_record(trial: Trial, observed: Observed, settings: Settings) -> dict[str, Any]:
    """Return the object that `observation_line` writes, as a reader of the line gets it."""
    record: dict[str, Any] = _WRITER.dump_python(_observation(trial, observed, settings), mode="json", **_AS_WRITTEN)
    return record


def _observation(trial: Trial, observed: Observed, settings: Settings) -> dict[str, Any]:
    answer = observed.answer
    # Traces may quote whole documents, so that they are stored only where the user asks for them.
    if answer is not None and answer.trace is not None and not settings.save_traces:
        answer = replace(answer, trace=None)
    case: dict[str, Any] = case_to_mapping(trial.case)
    case["source"] = trial.case.source
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "case_key": trial.key,
        "trial": trial.number,
        "case": case,
        "answer": answer_to_response(answer, keeps_objects=True) if answer else None,
        # The values of a failure to ask. The order of the keys is that of the line.
        "matching": None,
        "judgements": {},
        "asked_k": None,
        "k": None,
        "params": {},
        "timings": observed.timings,
        "error": None,
    }
    if answer is not None and answer.repeats_credential:
        record[REPEATS_CREDENTIAL] = True
    if isinstance(observed, Observation) and observed.dialogue is not None:
        record["dialogue"] = _dialogue(observed.dialogue)
    if isinstance(observed, Observation) and observed.rewritten is not None:
        record["rewrite"] = _rewritten(observed.rewritten, trial, settings)
    if isinstance(observed, Observation):
        record["matching"] = _matching(observed.matching)
        record["judgements"] = {name: _judgement(each) for name, each in observed.judgements.items()}
        record["asked_k"] = observed.asked_k
        record["k"] = observed.k
        if observed.params:
            # Parameters may hold keys, and these files are shared.
            record["params"] = public_params(observed.params)
    else:
        record["error"] = observed.problem
    return record


def _rewritten(rewritten: Observation | Problem, trial: Trial, settings: Settings) -> dict[str, Any]:
    """Return what was observed of the case asked as its rewrite: the members that differ from those of its line."""
    observed: Observed = AskFailure(rewritten) if isinstance(rewritten, Problem) else rewritten
    line = _observation(replace(trial, case=as_rewrite(trial.case)), observed, settings)
    members = {name: line[name] for name in _OF_REWRITE if name in line}
    return {"question": trial.case.rewrite, **members}


_OF_REWRITE = (
    "answer",
    REPEATS_CREDENTIAL,
    "matching",
    "judgements",
    "asked_k",
    "k",
    "params",
    "timings",
    "error",
    "dialogue",
)


def _dialogue(dialogue: Dialogue) -> dict[str, Any]:
    written: dict[str, Any] = {
        "conversation_id": dialogue.conversation_id,
        "history": [turn._asdict() for turn in dialogue.history],
        "passages": dialogue.passages,
    }
    if dialogue.is_gold:
        written["is_gold"] = True
    return written


def read_dialogue(written: Mapping[str, Any] | None) -> Dialogue | None:
    """Return what was said before a turn, from the `dialogue` of its line; None for a single question."""
    if written is None:
        return None
    history = [Turn(**turn) for turn in written["history"]]
    passages = [(chunk_id, text) for chunk_id, text in written["passages"]]
    is_gold = written.get("is_gold", False)
    return Dialogue(written["conversation_id"], tuple(history), tuple(passages), is_gold=is_gold)


class _Debug(TypedDict, total=False):
    retrieved_chunks: tuple[Chunk, ...]


class _Response(TypedDict, total=False):
    references: tuple[Reference, ...]
    debug: _Debug


class _RewriteRecord(TypedDict, total=False):
    """Those of the same case asked as its rewrite."""

    answer: _Response


class _ObservationRecord(TypedDict, total=False):
    """The members of an observation that hold objects of the model; they are written without unset fields."""

    answer: _Response
    rewrite: _RewriteRecord


_WRITER: TypeAdapter[Any] = TypeAdapter(
    TypeAliasType("_Written", _ObservationRecord),  # type: ignore[arg-type]  # so that it takes a configuration
    config=ConfigDict(extra="allow", ser_json_inf_nan="constants", defer_build=True),
)
_AS_WRITTEN: dict[str, Any] = {"exclude_defaults": True, "warnings": False}


def _matching(matching: Matching) -> dict[str, Any]:
    searches = {}
    if matching.searches:  # written only where an agent searched, which few do
        searches["searches"] = [_sorted_golds(hits) for hits in matching.searches]
    return {
        "kind": matching.kind,
        "golds": matching.golds,
        "hits": _sorted_golds(matching.hits),
        "cited": _sorted_golds(matching.cited),
        "irrelevant": matching.irrelevant,
        "flags": matching.flags,
        "loose": matching.loose,
        **searches,
    }


def _sorted_golds(matches: Sequence[Set[int]] | None) -> list[list[int]] | None:
    return None if matches is None else [*map(sorted, matches)]


def _judgement(judgement: Judgement) -> dict[str, Any]:
    # Not `asdict`: it copies every text and list, 40 µs a judgement.
    members = ((name, getattr(judgement, name)) for name in _JUDGEMENT)
    written = {name: value for name, value in members if value not in (None, "", (), {})}
    return written if judgement.error is None else {**written, "error": asdict(judgement.error)}


_JUDGEMENT = tuple(field.name for field in fields(Judgement))


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def observed_of(line: Mapping[str, Any], config: Mapping[str, Any]) -> Observed:
    """Read a line of observations.jsonl; raise SettingsError if it is not one that a run writes."""
    try:
        if line["error"] is None and (observation := observation_of(line, config)) is not None:
            return observation
        answer = None if line["answer"] is None else _read_answer(line)
        return AskFailure(Problem(**line["error"]), Timings(**line["timings"]), answer)
    except (KeyError, TypeError, ValueError, AttributeError):
        where = f"{OBSERVATIONS}: {line.get('case_key')!r}"
        raise SettingsError(f"{where}: not an observation as a run writes it; was the file changed?") from None


def _read_answer(line: Mapping[str, Any]) -> Answer:
    return marked(answer_from_line(line["answer"], line["case_key"]), line)


def marked(answer: Answer, line: Mapping[str, Any]) -> Answer:
    """Return the answer with the mark of a masked credential, if the line that holds it has the mark."""
    return replace(answer, repeats_credential=True) if line.get(REPEATS_CREDENTIAL) else answer


def trial_of(line: Mapping[str, Any]) -> Trial:
    """Return the trial of a line of observations.jsonl."""
    case = case_from_mapping(line["case"])
    return Trial(case, line["trial"], own_test(line["case_key"], case.key))


def observation_of(record: Mapping[str, Any], config: Mapping[str, Any]) -> Observation | None:
    """Return the observation in a line of observations.jsonl, with the matches that the run found.

    They are not made again: the notes that decided about them may have changed since.
    """
    if record["k"] is None:
        return None
    judgements = {name: _read_judgement(name, judgement) for name, judgement in record["judgements"].items()}
    phrases = config["settings"].get("abstention", {}).get("phrases", ())
    rewritten = None
    if "rewrite" in record:
        rewritten = rewritten_of(record, config)
    return Observation(
        case_from_mapping(record["case"]),
        _read_answer(record),
        matching=_read_matching(record["matching"]),
        judgements=judgements,
        k=record["k"],
        asked_k=record["asked_k"],
        timings=Timings(**record["timings"]),
        trial=record["trial"],
        params=record.get("params", {}),
        refusals=tuple(phrases),
        dialogue=read_dialogue(record.get("dialogue")),
        rewritten=rewritten,
    )


def rewritten_of(record: Mapping[str, Any], config: Mapping[str, Any]) -> Observation | Problem:
    """Return what a line of observations.jsonl holds of the case asked as its rewrite."""
    written = record["rewrite"]
    if written["error"] is not None:
        return Problem(**written["error"])
    line = {**_line_of_rewrite(record), "case": record["case"]}
    observation = observation_of(line, config)
    if observation is None:
        raise ValueError("neither an answer nor an error")
    return replace(observation, case=as_rewrite(observation.case))


_OF_CONVERSATION = ("rewrite", "dialogue", REPEATS_CREDENTIAL)
"""The members that the line of a case asked as its rewrite does not share."""


def _line_of_rewrite(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line that the case would have, had it been asked as its rewrite alone."""
    line = {name: value for name, value in record.items() if name not in _OF_CONVERSATION}
    return {**line, **record["rewrite"]}


def _with_tuples(written: Mapping[str, Any]) -> dict[str, Any]:
    values = dict(written)
    for name, value in written.items():
        if isinstance(value, list):
            values[name] = tuple(value)
    return values


def _read_matching(written: Mapping[str, Any]) -> Matching:
    values = _with_tuples(written)
    for name in ("hits", "cited"):
        if values[name] is not None:
            values[name] = tuple(map(frozenset, values[name]))
    values["loose"] = tuple(LooseMatch(*match) for match in written["loose"])
    values["searches"] = tuple(map(_read_hits, written.get("searches", ())))
    return Matching(**values)


def _read_hits(written: Sequence[Sequence[int]] | None) -> tuple[frozenset[int], ...] | None:
    return None if written is None else tuple(map(frozenset, written))


def matched_to(record: Mapping[str, Any], case: EvalCase, gold_by: GoldBy, rules: PlaceRules) -> dict[str, Any]:
    """Return a line of observations.jsonl with other labels of its case, and the answer matched to them."""
    written = {**record, "case": case_to_mapping(case) | {"source": list(case.source)}}
    if record["k"] is None:
        return written
    answer = answer_from_line(record["answer"], record["case_key"])
    written["matching"] = _matching(match(case, answer, gold_by, rules))
    if "rewrite" in record:
        written["rewrite"] = _rewrite_matched_to(record, case, gold_by, rules)
    return written


def _rewrite_matched_to(
    record: Mapping[str, Any], case: EvalCase, gold_by: GoldBy, rules: PlaceRules
) -> dict[str, Any]:
    rewrite = dict(record["rewrite"])
    if rewrite["question"] != case.rewrite:
        rewrite["error"] = asdict(Problem("missing", REWRITE_CHANGED))
    if rewrite["error"] is None:
        answer = answer_from_line(rewrite["answer"], record["case_key"])
        rewrite["matching"] = _matching(match(as_rewrite(case), answer, gold_by, rules))
    return rewrite


REWRITE_CHANGED = "the rewrite changed since it was asked; run the case again"


def _read_judgement(rubric: str, written: Mapping[str, Any]) -> Judgement:
    # `rubric` and `scores` have no default, and empty values are not written.
    values = {"rubric": rubric, "scores": {}, **_with_tuples(written)}
    values["error"] = Problem(**written["error"]) if "error" in written else None
    return Judgement(**values)
