"""An asyncio script with one shared httpx client: `python shared_client.py URL CASES IN_FLIGHT`.

Asks, judges, computes two scores and writes a line for each case. No tests, no gates, no comparison.
"""

from __future__ import annotations

import asyncio
import json
import sys

import httpx


async def evaluate(client: httpx.AsyncClient, number: int) -> str:
    """One case as a line of results."""
    question = f"How is pump number {number} primed, and which valve has to be opened for it?"
    answer = (await client.post("/api/v1/ask?debug=true", json={"question": question, "k": 5})).json()
    chunks = answer["debug"]["retrieved_chunks"]
    contexts = [{"chunk_id": chunk["chunk_id"], "text": chunk["text"]} for chunk in chunks]
    variables = {"question": question, "answer": answer["answer"], "contexts": contexts}
    judged = (await client.post("/judge", json=variables)).json()
    hits = [chunk["heading_path"] == "# Pump > ## Priming" for chunk in chunks]
    scores = {"recall_any": float(any(hits)), "groundedness": judged["score"]}
    return json.dumps({"id": number, "answer": answer, "judged": judged, "scores": scores})


async def main(url: str, cases: int, in_flight: int) -> None:
    slots = asyncio.Semaphore(in_flight)
    limits = httpx.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=120) as client:

        async def one(number: int) -> str:
            async with slots:
                return await evaluate(client, number)

        lines = await asyncio.gather(*(one(number) for number in range(cases)))
    with open("results.jsonl", "w", encoding="utf-8") as file:  # noqa: ASYNC230 because nothing else waits by now
        file.writelines(line + "\n" for line in lines)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
