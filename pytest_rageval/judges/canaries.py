"""Canaries: answers of known quality that test a judge before its scores are trusted, and the results.

Results of judge checks are stored next to the judge cache, by the judge's identity.
"""

from __future__ import annotations

import asyncio
import statistics
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from pytest_rageval.errors import JudgeError
from pytest_rageval.io.atomic import readable_json, write_json
from pytest_rageval.judges.checked_judge import judgement_problem
from pytest_rageval.judges.judge import BaseJudge, can_judge, identity_of
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.model import NOTHING, Json, JudgeRequest, Rubric
from pytest_rageval.text import excerpt

GOOD_FROM, BAD_TO = 0.8, 0.4
"""Shares of the scale: from 0 to 5, a good answer should get at least 4, a bad one at most 2."""


@dataclass(frozen=True, slots=True)
class Canary:
    """One answer, and whether its score should be at the top of the scale or at its bottom.

    is_good         None if unknown: any score on the scale is right, but one is required
    is_attack       it differs from another canary only by text that tries to change the score
    claims_nothing  a judge may decline to score it
    contexts        further passages, after the two of each canary
    material        variables that replace the default material
    metric          the score to check, for a rubric with several
    claims          fewest and most claims in a split answer, for a rubric without scores
    """

    name: str
    answer: str
    is_good: bool | None = None
    is_attack: bool = False
    claims_nothing: bool = False
    contexts: tuple[str, ...] = ()
    material: Mapping[str, Json] = field(default_factory=dict)
    metric: str | None = None
    claims: tuple[float, float] | None = None

    def band(self, scale: tuple[float, float]) -> tuple[float, float]:
        """Return the lowest and highest acceptable value for this canary."""
        low, high = scale
        if self.claims is not None:
            return self.claims
        if self.is_good is None:
            return scale
        share = GOOD_FROM if self.is_good else BAD_TO
        # Rounded: 0.8 of a scale is no binary fraction, and a score at the limit passes.
        bound = round(low + share * (high - low), 6)
        return (bound, high) if self.is_good else (low, bound)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's result on one canary, from one or more trials.

    `scores` are in the order of the trials. `error` says in one line why one is missing; it is None if the judge
    declined to score an answer that claims nothing.
    """

    rubric: str
    canary: str
    expected: tuple[float, float]
    scores: tuple[float, ...] = ()
    error: str | None = None
    is_attack: bool = False

    @property
    def score(self) -> float | None:
        """Return the median of the scores, or None without scores."""
        return statistics.median(self.scores) if self.scores else None

    @property
    def passed(self) -> bool:
        """Return True if there is no error and every score lies in the expected band, its ends included."""
        low, high = self.expected
        return self.error is None and all(low <= score <= high for score in self.scores)


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("canaries.toml").read_text(encoding="utf-8"))


@cache
def shipped_canaries() -> Mapping[str, tuple[Canary, ...]]:
    """Return the canaries by rubric. For abstention, the top of the scale means that the system abstained."""
    # Imported here, since a run that judges nothing need not pay for building it.
    from pydantic import TypeAdapter

    file = _file()
    known = {canary.name: canary for canary in TypeAdapter(list[Canary]).validate_python(file["canaries"])}
    for name, base in file["attacks"].items():
        answer = f"{known[base].answer}\n\n{file['asks']}"
        known[name] = replace(known[base], name=name, answer=answer, is_attack=True)
    canaries: dict[str, tuple[Canary, ...]] = {}
    for rubric, names in file["rubrics"].items():
        metric = file["metrics"].get(rubric)
        canaries[rubric] = tuple(replace(known[name], metric=metric) for name in names)
    return canaries


def canaries_for(judge: BaseJudge, wordings: Mapping[str, Rubric] = NOTHING) -> list[tuple[Rubric, Canary]]:
    """Return all canaries of the rubrics that the judge can answer, including the project's own."""
    shipped = shipped_canaries()
    # For a rubric of the project's own, only the project knows the right score, so any score passes.
    any_answer = replace(shipped["correctness"][0], name="any answer", is_good=None)
    pairs: list[tuple[Rubric, Canary]] = []
    for name in dict.fromkeys((*shipped, *wordings)):
        if can_judge(judge, name):
            rubric = wordings.get(name) or load_rubric(name)
            pairs += [(rubric, canary) for canary in shipped.get(rubric.name) or (any_answer,)]
    return pairs


async def try_canaries(judge: BaseJudge, wordings: Mapping[str, Rubric] = NOTHING, repeats: int = 1) -> list[Verdict]:
    """Judge each canary `repeats` times and return one verdict per canary.

    `wordings` are the project's own rubrics by name; shipped ones fill the gaps. All requests are sent at once (the
    judge limits itself). An error of the judge becomes part of the verdict.
    """

    async def verdict(rubric: Rubric, canary: Canary) -> Verdict:
        trials = await asyncio.gather(*(_trial(judge, rubric, canary, trial) for trial in range(repeats)))
        scores = tuple(score for score in trials if isinstance(score, float))
        error = next((error for error in trials if isinstance(error, str)), None)
        return Verdict(rubric.name, canary.name, canary.band(rubric.scale), scores, error, canary.is_attack)

    return await asyncio.gather(*(verdict(rubric, canary) for rubric, canary in canaries_for(judge, wordings)))


async def _trial(judge: BaseJudge, rubric: Rubric, canary: Canary, trial: int) -> float | str | None:
    """Return the score on the rubric's scale, or the number of claims for a rubric that splits answers.

    Without one, return why in one line, or None if the judge may decline to score this canary.
    """
    metric = canary.metric or next(iter(rubric.scores), rubric.name)
    try:
        judgement = await judge.judge(request_of(rubric, canary, trial))
        problem = judgement_problem(judgement)
    except JudgeError as failed:
        return excerpt(str(failed), 300)
    except Exception as failed:  # noqa: BLE001  a user's own judge may raise anything; the error belongs to this canary
        return excerpt(f"{type(failed).__name__}: {failed}", 300)
    if problem is not None:
        return excerpt(problem, 300)
    if canary.claims is not None:
        claims = judgement.extra.get("claims")
        if isinstance(claims, Sequence) and not isinstance(claims, str):
            return float(len(claims))
    elif (score := judgement.scores.get(metric)) is not None:
        # A judge may score on a scale of its own.
        low, high = rubric.scale
        judged_low, judged_high = judgement.scale
        return low + (score - judged_low) * (high - low) / (judged_high - judged_low)
    return None if canary.claims_nothing else f"gave no score for {metric}"


def request_of(rubric: Rubric, canary: Canary, trial: int = 0) -> JudgeRequest:
    """Build the request that shows a canary to a judge."""
    file = _file()
    notes = [{"chunk_id": f"note-{number}.md", "text": text} for number, text in enumerate(canary.contexts, start=1)]
    material: dict[str, Json] = {
        **file["material"],
        "answer": canary.answer,
        "claim": canary.answer,
        "claims": [{"number": 1, "text": canary.answer}],
        "contexts": [*file["passages"], *notes],
        **canary.material,
    }
    # A citation without text is null in a request, which TOML cannot write.
    material["citations"] = [{**citation, "text": None} for citation in material["citations"]]
    variables = {name: material[name] for name in rubric.variables}
    return JudgeRequest(rubric.name, rubric.prompt_version, variables, trial, wording=rubric)


def rubrics_of(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    """Group verdicts by rubric, in their order."""
    by_rubric: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_rubric.setdefault(verdict.rubric, []).append(verdict)
    return by_rubric


CheckRecord = Mapping[str, Any]
"""`checked` (UTC), `repeats`, and `rubrics`: by name `prompt_version`, number of `canaries` and those that `failed`."""


def store_check(
    path: Path, judge: BaseJudge, verdicts: Sequence[Verdict], wordings: Mapping[str, Rubric], repeats: int
) -> None:
    """Write a judge's result to the file in place of its last one; raise OSError if the file is not writable."""
    rubrics: dict[str, dict[str, Json]] = {}
    for name, group in rubrics_of(verdicts).items():
        rubric = wordings.get(name) or load_rubric(name)
        rubrics[name] = {
            "prompt_version": rubric.prompt_version,
            "canaries": len(group),
            "failed": [verdict.canary for verdict in group if not verdict.passed],
        }
    record = {"checked": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "repeats": repeats, "rubrics": rubrics}
    write_json(path, {**readable_json(path), identity_of(judge): record})


def stored_check(path: Path, judge: BaseJudge) -> CheckRecord | None:
    """Return the last result for this judge, or None if it was never checked here."""
    record = readable_json(path).get(identity_of(judge))
    return record if isinstance(record, dict) and isinstance(record.get("rubrics"), dict) else None


def check_of_run(record: CheckRecord | None, judge: BaseJudge, wordings: Mapping[str, Rubric]) -> dict[str, Any] | None:
    """Return the part of a result that concerns a run's rubrics in their current wording; None without a result.

    `unchecked` names the rubrics that were not checked in that wording.
    """
    if record is None:
        return None
    versions = {name: rubric.prompt_version for name, rubric in sorted(wordings.items()) if can_judge(judge, name)}
    # A result for another wording says nothing about this one.
    tried = {name: result for name, result in record["rubrics"].items() if _is_for(result, versions.get(name))}
    unchecked = [name for name in versions if name not in tried]
    return {**record, "rubrics": tried, "unchecked": unchecked}


def _is_for(result: object, version: str | None) -> bool:
    return isinstance(result, dict) and result.get("prompt_version") == version
