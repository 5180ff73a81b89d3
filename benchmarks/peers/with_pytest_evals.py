"""The same questions with pytest-evals: a test module that its command runs, one call after the other.

`python with_pytest_evals.py URL CASES IN_FLIGHT` runs pytest on this module; IN_FLIGHT changes nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from loopback_calls import question, recall_any

URL, CASES = os.environ.get("PEER_URL", ""), int(os.environ.get("PEER_CASES", "0"))


@pytest.fixture(scope="session")
def client() -> Any:
    with httpx.Client(base_url=URL, timeout=120) as client:
        yield client


@pytest.mark.eval(name="pumps")
@pytest.mark.parametrize("case", [{"question": question(number)} for number in range(CASES)])
def test_case(case: dict[str, str], eval_bag: Any, client: httpx.Client) -> None:
    answer = client.post("/api/v1/ask?debug=true", json={"question": case["question"], "k": 5}).json()
    chunks = answer["debug"]["retrieved_chunks"]
    contexts = [{"chunk_id": chunk["chunk_id"], "text": chunk["text"]} for chunk in chunks]
    variables = {"question": case["question"], "answer": answer["answer"], "contexts": contexts}
    eval_bag.answer = answer["answer"]
    eval_bag.recall_any = recall_any(chunks)
    eval_bag.groundedness = client.post("/judge", json=variables).json()["score"]
    assert eval_bag.recall_any == 1


@pytest.mark.eval_analysis(name="pumps")
def test_analysis(eval_results: list[Any]) -> None:
    assert len(eval_results) == CASES
    assert sum(each.result.groundedness for each in eval_results) / CASES >= 3


def main(url: str, cases: int) -> int:
    os.environ |= {"PEER_URL": url, "PEER_CASES": str(cases)}
    here = Path(__file__)
    module = Path(shutil.copy(here, Path("test_pumps.py").absolute()))
    options = ["-q", "-p", "no:cacheprovider", "--run-eval", "--run-eval-analysis"]
    return int(pytest.main([*options, "-o", f"pythonpath={here.parent}", str(module)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
