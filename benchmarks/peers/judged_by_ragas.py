"""Cases judged by ragas for faithfulness and correctness: `python judged_by_ragas.py URL CASES`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import FactualCorrectness, Faithfulness


async def main(url: str, cases: list[dict[str, Any]]) -> None:
    llm = llm_factory("gpt-4o", client=AsyncOpenAI(api_key="none", base_url=url))
    faithfulness, correctness = Faithfulness(llm=llm), FactualCorrectness(llm=llm)
    for case in cases:
        question, answer = case["question"], case["answer"]
        await faithfulness.ascore(user_input=question, response=answer, retrieved_contexts=case["chunks"])
        await correctness.ascore(response=answer, reference=case["reference"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))))
