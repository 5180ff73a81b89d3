"""The same questions with inspect-ai: `python with_inspect_ai.py URL CASES IN_FLIGHT`."""

from __future__ import annotations

import sys

import httpx
from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from loopback_calls import ask, client_of, judge, question, recall_any


@solver
def asked(client: httpx.AsyncClient) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        answer = await ask(client, state.input_text)
        state.output.completion = answer["answer"]
        state.metadata["chunks"] = answer["debug"]["retrieved_chunks"]
        return state

    return solve


@scorer(metrics=[mean()], name="recall_any")
def came() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=recall_any(state.metadata["chunks"]))

    return score


@scorer(metrics=[mean()], name="groundedness")
def judged(client: httpx.AsyncClient) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        chunks = state.metadata["chunks"]
        return Score(value=await judge(client, state.input_text, state.output.completion, chunks))

    return score


def main(url: str, cases: int, in_flight: int) -> None:
    client = client_of(url, in_flight)
    task = Task(
        dataset=[Sample(id=number + 1, input=question(number)) for number in range(cases)],
        solver=asked(client),
        scorer=[came(), judged(client)],
    )
    (log,) = evaluate(task, model="mockllm/model", max_samples=in_flight, display="none", log_dir="logs")
    assert log.status == "success", log.error
    assert log.results is not None
    assert log.results.completed_samples == cases


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
