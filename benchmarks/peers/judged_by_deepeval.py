"""Cases judged by deepeval for faithfulness and correctness: `python judged_by_deepeval.py URL CASES`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from deepeval.metrics import FaithfulnessMetric, GEval
from deepeval.models import OpenAIModel
from deepeval.test_case import LLMTestCase, SingleTurnParams

CRITERIA = "Determine whether the actual output is factually correct based on the expected output."
READ = [SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT, SingleTurnParams.EXPECTED_OUTPUT]


async def main(url: str, cases: list[dict[str, Any]]) -> None:
    model = OpenAIModel(model="gpt-4o", api_key="none", base_url=url)
    for case in cases:
        test_case = LLMTestCase(
            input=case["question"],
            actual_output=case["answer"],
            expected_output=case["reference"],
            retrieval_context=case["chunks"],
        )
        # A metric for each case: its steps are made from the criteria anew, as `evaluate` has it.
        metrics = [
            FaithfulnessMetric(model=model),
            GEval(name="Correctness", criteria=CRITERIA, evaluation_params=READ, model=model),
        ]
        for metric in metrics:
            await metric.a_measure(test_case, _show_indicator=False)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))))
