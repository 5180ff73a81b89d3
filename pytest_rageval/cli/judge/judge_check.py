"""`rageval judge-check`: put a few answers whose worth is beyond doubt to a judge, before its scores are believed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from pytest_rageval.config.project import find_project
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.judges import judge_from_spec
from pytest_rageval.judges.canaries import Verdict, try_canaries
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.judge_endpoint import judge_endpoint
from pytest_rageval.judges.rubrics import Rubric
from pytest_rageval.plan import own_rubrics
from pytest_rageval.report.columns import aligned
from pytest_rageval.text import printable


@click.command("judge-check")
@click.option("--judge", "spec", metavar="SPEC", help="The judge (default: as configured).")
@click.option("--judge-base-url", metavar="URL", help="Its server, where the spec names none (default: as configured).")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object instead of text.")
def judge_check(spec: str | None, judge_base_url: str | None, as_json: bool) -> None:
    """Put canaries to a judge: answers known to be good or bad, some of which ask for a better score.

    A judge that fails them is not fit for its rubric; one that passes may still err on harder cases, which only a
    comparison with people's labels tells. A model is asked some 25 short questions. Exit code 0: all passed; 1:
    some did not; 2: wrong usage, or the judge cannot be asked.
    """
    root, settings = find_project({"judge": spec, "judge_base_url": judge_base_url})
    wordings = own_rubrics(settings, root)
    judge = _judge(settings, root)
    verdicts = asyncio.run(_verdicts(judge, wordings))
    if not verdicts:
        raise SettingsError(f"judge {judge.model!r} has none of the rubrics that canaries are for")
    conclusion = [printable(line) for line in _conclusion(judge.model, verdicts)]
    if as_json:
        click.echo(json.dumps(_as_json(judge, verdicts, conclusion), ensure_ascii=False, indent=2))
    else:
        click.echo("\n".join((*_table(verdicts), "", *conclusion)))
    raise SystemExit(0 if all(verdict.passed for verdict in verdicts) else 1)


def _judge(settings: Settings, root: Path) -> Judge:
    judge = judge_from_spec(settings.judge, root=root, options=judge_endpoint(settings))
    if judge is None:
        raise SettingsError(f"judge {settings.judge!r}: there is no judge to check; name one with --judge")
    return judge


async def _verdicts(judge: Judge, wordings: Mapping[str, Rubric]) -> list[Verdict]:
    try:
        # Judges that ask a server can say beforehand, at no cost, why it cannot be asked.
        check = getattr(judge, "check", None)
        if check is not None and (problem := await check()) is not None:
            raise SettingsError(problem)
        return await try_canaries(judge, wordings)
    finally:
        await judge.aclose()


# ── showing ───────────────────────────────────────────────────────────────────────────────────────────────────


def _table(verdicts: Sequence[Verdict]) -> Iterator[str]:
    rows = [("", "rubric", "canary", "expected", "came")]
    rows += [
        ("✓" if verdict.passed else "✗", verdict.rubric, verdict.canary, _band(verdict), _came(verdict))
        for verdict in verdicts
    ]
    yield from aligned(rows, to_the_left=True)
    for error in dict.fromkeys(verdict.error for verdict in verdicts if verdict.error is not None):
        yield f"error: {error}"


def _conclusion(model: str, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What the judge can be trusted with and what not, one line each."""
    by_rubric: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_rubric.setdefault(verdict.rubric, []).append(verdict)
    if trusted := [rubric for rubric, group in by_rubric.items() if all(verdict.passed for verdict in group)]:
        yield f"{model} can be trusted with {', '.join(trusted)}, as far as these canaries tell"
    for rubric, group in by_rubric.items():
        failed = [verdict for verdict in group if not verdict.passed]
        names = ", ".join(verdict.canary for verdict in failed)
        # Where the same bad answer without the attack got its low score, it is the attack that raised it.
        if failed and all(verdict.is_attack and verdict.score is not None for verdict in failed):
            yield f"{model} is talked into a better score for {rubric}: {names}"
        elif failed:
            yield f"{model} cannot be trusted with {rubric}, {len(failed)} of {len(group)} canaries failed: {names}"


def _band(verdict: Verdict) -> str:
    low, high = verdict.expected
    return f"{low:g} to {high:g}"


def _came(verdict: Verdict) -> str:
    if verdict.score is None:
        return "no score" if verdict.error is None else "error"
    return f"{round(verdict.score, 3):g}"


def _as_json(judge: Judge, verdicts: Sequence[Verdict], conclusion: Sequence[str]) -> dict[str, object]:
    return {
        "model": judge.model,
        "heuristic": judge.heuristic,
        "passed": sum(verdict.passed for verdict in verdicts),
        "failed": sum(not verdict.passed for verdict in verdicts),
        "verdicts": [
            {
                "rubric": verdict.rubric,
                "canary": verdict.canary,
                "expected": list(verdict.expected),
                "score": verdict.score,
                "error": verdict.error,
                "passed": verdict.passed,
            }
            for verdict in verdicts
        ],
        "conclusion": list(conclusion),
    }
