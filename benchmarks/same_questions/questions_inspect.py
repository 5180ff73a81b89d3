"""The ten questions with Inspect: `inspect eval questions_inspect.py --model none`."""

from __future__ import annotations

from bot import FACTS, answer
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import Generate, Solver, TaskState, solver


@solver  # type: ignore[untyped-decorator]
def bot() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output.completion = answer(state.input_text)
        return state

    return solve


@task  # type: ignore[untyped-decorator]
def questions() -> Task:
    samples = [Sample(input=question, target=fact) for question, fact in FACTS.items()]
    return Task(dataset=samples, solver=bot(), scorer=includes())
