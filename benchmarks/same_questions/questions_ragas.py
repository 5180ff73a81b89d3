"""The ten questions with Ragas: `python questions_ragas.py`."""

from __future__ import annotations

import asyncio

from bot import FACTS, answer
from ragas import SingleTurnSample
from ragas.metrics import StringPresence


async def main() -> None:
    metric = StringPresence()
    scores = []
    for question, fact in FACTS.items():
        sample = SingleTurnSample(user_input=question, response=answer(question), reference=fact)
        scores.append(await metric.single_turn_ascore(sample))
    print(f"string_presence {sum(scores) / len(scores)}")


asyncio.run(main())
