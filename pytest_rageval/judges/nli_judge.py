"""The judge by natural language inference: a cross-encoder checks if any passage entails the answer's claims."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytest_rageval.abstention.detector import only_declines
from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.judges.cross_encoder import CrossEncoder, model_files
from pytest_rageval.judges.judge import FREE, JudgeSpec, check_rubric, share_judgement
from pytest_rageval.judges.judging import share_of_claims
from pytest_rageval.judges.lexical_terms import LONGEST_TEXT, claims_in
from pytest_rageval.judges.requests import judged_text
from pytest_rageval.model import Judgement, JudgeRequest

SUPPORTED = 0.5
"""A claim counts as supported from this chance on."""
_BEFORE_STOP = re.compile(r" (?=[.,;:!?…])")
"""The space that a removed citation mark leaves: these models were trained on sentences without it."""
PACKAGES = ("onnxruntime", "tokenizers", "huggingface_hub")


def nli_judge(spec: JudgeSpec) -> NliJudge:
    """Create the judge of `nli:FOLDER` or `nli:OWNER/NAME`; raise SettingsError if a package or file is missing."""
    if missing := [package for package in PACKAGES if find_spec(package) is None]:
        raise SettingsError(f"{', '.join(missing)} is not installed; pip install 'pytest-rageval[nli]'")
    return NliJudge(spec.rest, spec.root)


class NliJudge:
    """A judge that scores each claim of an answer against each passage; the best passage counts.

    groundedness, faithfulness   mean over the claims of the chance that a passage supports them
    claim_support                share of the supported claims, with a chance of at least SUPPORTED

    Claims are the answer's sentences without those that decline. As a model's, its scores gate and are cached. Its
    identity is the content of its files. It costs time only.
    """

    heuristic = False
    is_local = False
    is_pinned = True
    rubrics = frozenset({"groundedness", "faithfulness", "claim_support"})

    def __init__(self, written: str, root: Path | None) -> None:
        files = model_files(written, root)
        self.model = f"nli/2:{files.name}@{files.digest[:12]}"
        self.identity = f"nli/2:{files.digest}"
        self._encoder = CrossEncoder(files)

    async def judge(self, request: JudgeRequest) -> Judgement:
        """Judge one request; raise JudgeError if the model fails."""
        check_rubric(self, request)
        started = time.perf_counter()
        variables = request.variables
        claims = _claims(judged_text(variables))
        passages = [context["text"][:LONGEST_TEXT] for context in variables.get("contexts") or ()]
        best = await self._best(claims, passages)
        chances = [chance for chance, _ in best]
        share = _share(request.rubric, chances, has_passages=bool(passages))
        return share_judgement(
            self,
            request,
            share,
            _account(claims, chances, has_passages=bool(passages)),
            [*zip(claims, chances, strict=True)],
            SUPPORTED,
            latency_ms=round((time.perf_counter() - started) * 1000, 3),
            flags=tuple(_flags(variables)),
            extra={"evidence": evidence} if (evidence := _evidence(claims, best)) else {},
            **FREE,
        )

    async def aclose(self) -> None:
        """Do nothing: the judge holds no resources."""

    async def _best(self, claims: Sequence[str], passages: Sequence[str]) -> list[tuple[float, int]]:
        """Return for each claim the chance and number of the passage that supports it best; zeros without passages."""
        if not claims or not passages:
            return [(0.0, 0)] * len(claims)
        try:
            # In a thread: a pass takes tenths of a second and would block other cases.
            rows = await asyncio.to_thread(self._encoder.support, claims, passages)
        except JudgeError as error:
            raise JudgeError(error.kind, f"judge {self.model!r}: {error}") from None
        return [(max(row), row.index(max(row)) + 1) for row in rows]


def _claims(text: str) -> list[str]:
    """Return the sentences that claim something, as they would read without citation marks."""
    claims = claims_in(text)
    return [
        _BEFORE_STOP.sub("", " ".join(claim.text.split()))
        for claim in claims
        if not (claim.is_small or only_declines(claim.text))
    ]


def _evidence(claims: Sequence[str], best: Sequence[tuple[float, int]]) -> list[dict[str, Any]]:
    """Return each supported claim with its passage (counted from 1) and its chance."""
    return [
        {"claim": claim, "verdict": "supported", "passage": number, "chance": round(chance, 4)}
        for claim, (chance, number) in zip(claims, best, strict=True)
        if chance >= SUPPORTED
    ]


def _share(rubric: str, chances: Sequence[float], *, has_passages: bool) -> float | None:
    """Return the share of the rubric's scale: 0 without passages, None if the answer claims nothing."""
    if not has_passages:
        return 0.0
    if not chances:
        return None
    values = [float(chance >= SUPPORTED) for chance in chances] if rubric == "claim_support" else chances
    return math.fsum(values) / len(values)


def _account(claims: Sequence[str], chances: Sequence[float], *, has_passages: bool) -> str:
    if not has_passages:
        return "the system reported no passage that the answer could rest on"
    if not claims:
        return "the answer makes no claim"
    supported = sum(chance >= SUPPORTED for chance in chances)
    weakest = min(zip(chances, claims, strict=True))
    return f"{share_of_claims(supported, len(claims))}; weakest, at {weakest[0]:.2f}: {weakest[1][:120]}"


def _flags(variables: Any) -> Iterator[str]:
    if any(len(context["text"]) > LONGEST_TEXT for context in variables.get("contexts") or ()):
        yield f"of a passage the first {LONGEST_TEXT:,} characters were looked at"
