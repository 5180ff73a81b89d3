"""Do one request for all rubrics and a request for each agree? `python benchmarks/judge_modes.py [--judge SPEC]`.

Answers of the labelled packs of the tests are judged in both modes, and the scores compared by rubric: the share of
equal ones, and weighted kappa. Without --judge, a scripted model answers as the lexical judge scores: that shows what
our side adds (prompts, replies, parts), not what a model does when it is asked for more at once. A real one, as in
`--judge openai:MODEL@URL`, is paid for. Printed as Markdown; ends with 1 if the scripted model's scores differ.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from judge_requests import Counter, fitting, served

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.judge_spec import judge_from_spec
from pytest_rageval.judges.judging import judge_answer
from pytest_rageval.judges.lexical_judge import LexicalJudge
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.judges.rubrics.prompt_text import LABELS
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.model import Answer, Chunk, EvalCase, Gold, Judgement, JudgeRequest, Problem
from pytest_rageval.stats.agreement import weighted_kappa

DATA = Path(__file__).parents[1] / "tests" / "data"
RUBRICS = ("groundedness", "correctness", "relevance", "faithfulness", "reference_match")
FENCE = re.compile(r"^<(fence-\w+) ([a-z ]+)>\n(.*?)\n</\1 \2>$", re.MULTILINE | re.DOTALL)
Judged = Mapping[str, Judgement]


class Scripted(Counter):
    """A model that scores by the material of a request, as the lexical judge does."""

    def said(self, schema: dict[str, Any], name: str, prompt: str) -> Any:
        """Return the object of one rubric, or one with a part for each."""
        variables = {name: json.loads(text) for _, label, text in FENCE.findall(prompt) for name in NAMES[label]}
        return (
            part_of(name, schema, variables)
            if name in RUBRICS
            else {rubric: part_of(rubric, part, variables) for rubric, part in schema["properties"].items()}
        )


NAMES = {label: [name for name in LABELS if LABELS[name] == label] for label in LABELS.values()}


def part_of(name: str, schema: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
    """Return the object that the lexical judge's score makes of a rubric's schema."""
    rubric = load_rubric(name)
    read = {each: variables.get(each, []) for each in rubric.variables}
    scores = asyncio.run(LexicalJudge().judge(JudgeRequest(name, rubric.prompt_version, read))).scores
    return {**fitting(schema, schema), "score": round(scores.get(name, rubric.scale[0]), 2)}


def cases() -> Iterator[tuple[EvalCase, Answer]]:
    """Yield the answers with human labels, and those to questions with gold answers."""
    for row in rows("groundedness/labelled.jsonl"):
        chunks = tuple(Chunk(f"c{at}", rel_path=f"{at}.md", text=text) for at, text in enumerate(row["contexts"]))
        yield EvalCase(row["id"], row["question"]), Answer(row["answer"], chunks=chunks, abstained=False)
    golds = {row["id"]: row for row in rows("answers/cases.jsonl") if row["answerable"]}
    for output in rows("answers/system_outputs.jsonl"):
        if output["answer"].strip() and (asked := golds.get(output["id"])) is not None:
            gold = Gold(answers=tuple(dict.fromkeys(asked["expected_answers"])))
            yield (
                EvalCase(asked["id"], asked["question"], gold=gold),
                Answer(output["answer"], chunks=(), abstained=False),
            )


def rows(file: str) -> list[dict[str, Any]]:
    """Return the lines of a file of the tests."""
    return [json.loads(line) for line in (DATA / file).read_text(encoding="utf-8").splitlines()]


async def judged(spec: str, chosen: Sequence[tuple[EvalCase, Answer]], *, is_joint: bool) -> list[Judged]:
    """Judge the answers in one mode."""
    judge = judge_from_spec(spec, options=EndpointOptions(is_joint=is_joint))
    assert judge is not None

    def problem(error: JudgeError) -> Problem:
        return Problem(error.kind, str(error), error.raw)

    calls = (judge_answer(judge, case, answer, RUBRICS, 5, on_error=problem) for case, answer in chosen)
    try:
        return await asyncio.gather(*calls)
    finally:
        await judge.aclose()


def table(apart: Sequence[Judged], together: Sequence[Judged]) -> Iterator[tuple[str, ...]]:
    """Yield a row a rubric: answers scored in both modes, errors of either, equal scores, kappa."""
    for name in RUBRICS:
        both = [(one[name], other[name]) for one, other in zip(apart, together, strict=True) if name in one]
        scored = [(one.scores[name], other.scores[name]) for one, other in both if one.scores and other.scores]
        equal = sum(one == other for one, other in scored) / max(1, len(scored))
        kappa = weighted_kappa(scored, load_rubric(name).scale, squared=True)
        errors = (sum(pair[mode].error is not None for pair in both) for mode in (0, 1))
        yield (name, str(len(scored)), *map(str, errors), f"{equal:.3f}", "–" if kappa is None else f"{kappa:.3f}")


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Do both ways of asking agree?")
    parser.add_argument("--judge", metavar="SPEC", help="a real judge (default: a scripted model)")
    parser.add_argument("-n", type=int, default=200, help="answers, drawn from all packs")
    options = parser.parse_args(arguments)
    every = [*cases()]
    chosen = random.Random("judge modes").sample(every, min(options.n, len(every)))
    with ExitStack() as stack:
        spec = options.judge or f"openai:scripted@{stack.enter_context(served(Scripted))}"
        apart = asyncio.run(judged(spec, chosen, is_joint=False))
        together = asyncio.run(judged(spec, chosen, is_joint=True))
    found = [*table(apart, together)]
    for cells in (
        ("rubric", "answers", "errors apart", "errors together", "equal", "kappa"),
        ("---", *["--:"] * 5),
        *found,
    ):
        print(f"| {' | '.join(cells)} |")
    return int(options.judge is None and any(cells[-2] != "1.000" for cells in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
