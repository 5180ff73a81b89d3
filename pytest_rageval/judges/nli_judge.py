"""The judge by natural language inference: a cross-encoder checks if any passage entails the answer's claims."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Sequence
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any

from pytest_rageval.abstention.detector import only_declines
from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.judges.cross_encoder import CrossEncoder, model_files
from pytest_rageval.judges.judge import FREE, UNSUPPORTED, JudgeSpec, Share, ShareJudge
from pytest_rageval.judges.judging import share_of_claims
from pytest_rageval.judges.lexical_judge import LONGEST_TEXT, claims_in
from pytest_rageval.judges.requests import judged_text
from pytest_rageval.model import Json, JudgeRequest

SUPPORTED = 0.5
"""A claim counts as supported from this chance on."""
_BEFORE_STOP = re.compile(r" (?=[.,;:!?…])")
"""The space that a removed citation mark leaves: these models were trained on sentences without it."""
PACKAGES = ("onnxruntime", "tokenizers", "huggingface_hub")


def nli_judge(spec: JudgeSpec) -> NliJudge:
    """Create the judge of `nli:FOLDER` or `nli:OWNER/NAME`; raise SettingsError if a package or file is missing."""
    # Found, not imported: they are loaded at the first judgement.
    if missing := [package for package in PACKAGES if find_spec(package) is None]:
        raise SettingsError(f"{', '.join(missing)} is not installed; pip install 'pytest-rageval[nli]'")
    return NliJudge(spec.rest, spec.root)


class NliJudge(ShareJudge):
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
    supported = SUPPORTED

    def __init__(self, written: str, root: Path | None) -> None:
        files = model_files(written, root)
        self.model = f"nli/2:{files.name}@{files.digest[:12]}"
        self.identity = f"nli/2:{files.digest}"
        self._encoder = CrossEncoder(files)

    async def share(self, request: JudgeRequest) -> Share:
        """Score the claims; raise JudgeError if the model fails."""
        started = time.perf_counter()
        claims = _claims(judged_text(request.variables))
        passages = [context["text"] for context in request.variables.get("contexts") or ()]
        best = await self._best(claims, [text[:LONGEST_TEXT] for text in passages])
        fields: dict[str, Any] = {**FREE, "latency_ms": round((time.perf_counter() - started) * 1000, 3)}
        if any(len(text) > LONGEST_TEXT for text in passages):
            fields["flags"] = (f"of a passage the first {LONGEST_TEXT:,} characters were looked at",)

        rated: list[tuple[str, float]] = []
        evidence: list[dict[str, Json]] = []
        for claim, (chance, passage) in zip(claims, best, strict=True):
            rated.append((claim, chance))
            if chance >= SUPPORTED:
                support = {"claim": claim, "verdict": "supported", "passage": passage, "chance": round(chance, 4)}
                evidence.append(support)
        if evidence:
            fields["extra"] = {"evidence": evidence}
        if not passages:
            return Share(0.0, UNSUPPORTED, rated, fields)
        if not rated:
            return Share(None, "the answer makes no claim", rated, fields)

        supported = len(evidence)
        if request.rubric == "claim_support":
            value = supported / len(rated)
        else:
            value = math.fsum(chance for _, chance in rated) / len(rated)
        # Of claims with the same chance, the first in the alphabet: the order of the answer does not matter.
        claim, weakest = min(rated, key=itemgetter(1, 0))
        account = f"{share_of_claims(supported, len(rated))}; weakest, at {weakest:.2f}: {claim[:120]}"
        return Share(value, account, rated, fields)

    async def _best(self, claims: Sequence[str], passages: Sequence[str]) -> list[tuple[float, int]]:
        """Return for each claim the chance of the passage that supports it best, and its number from 1.

        Both are 0 without passages.
        """
        if not claims or not passages:
            return [(0.0, 0)] * len(claims)
        try:
            # In a thread: a pass takes tenths of a second and would block other cases.
            rows = await asyncio.to_thread(self._encoder.support, claims, passages)
        except JudgeError as error:
            raise JudgeError(error.kind, f"judge {self.model!r}: {error}") from None
        best: list[tuple[float, int]] = []
        for row in rows:
            chance = max(row)
            best.append((chance, row.index(chance) + 1))
        return best


def _claims(text: str) -> list[str]:
    """Return the sentences that claim something, as they would read without citation marks."""
    claims = []
    for claim in claims_in(text):
        if claim.is_small or only_declines(claim.text):
            continue
        claims.append(_BEFORE_STOP.sub("", " ".join(claim.text.split())))
    return claims
