"""The two calls of a case as the peers make them: a question to the system, its answer to the judge."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx


def client_of(url: str, in_flight: int) -> httpx.AsyncClient:
    """One client with a connection for each call in flight."""
    limits = httpx.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    return httpx.AsyncClient(base_url=url, limits=limits, timeout=120)


def question(number: int) -> str:
    return f"How is pump number {number} primed, and which valve has to be opened for it?"


async def ask(client: httpx.AsyncClient, question: str) -> dict[str, Any]:
    """The system's whole answer."""
    answer: dict[str, Any] = (await client.post("/api/v1/ask?debug=true", json={"question": question, "k": 5})).json()
    return answer


async def judge(client: httpx.AsyncClient, question: str, answer: str, chunks: list[dict[str, Any]]) -> float:
    """The judge's score, from 0 to 5."""
    contexts = [{"chunk_id": chunk["chunk_id"], "text": chunk["text"]} for chunk in chunks]
    variables = {"question": question, "answer": answer, "contexts": contexts}
    score: float = (await client.post("/judge", json=variables)).json()["score"]
    return score


def recall_any(chunks: list[dict[str, Any]]) -> float:
    """Did the chunk that answers come at all?"""
    return float(any(chunk["heading_path"] == "# Pump > ## Priming" for chunk in chunks))


async def ask_all(url: str, cases: int, in_flight: int) -> list[dict[str, Any]]:
    """All answers, for tools that score what was answered before."""
    slots = asyncio.Semaphore(in_flight)
    async with client_of(url, in_flight) as client:

        async def answer(number: int) -> dict[str, Any]:
            async with slots:
                return await ask(client, question(number))

        return list(await asyncio.gather(*map(answer, range(cases))))
