"""What does judging send? `python benchmarks/judge_requests.py`: requests and characters a case, in both modes.

A server on loopback counts: the same case (a question, an answer of three sentences, a reference, five chunks of 370
characters) is judged by groundedness and correctness with separate requests and with one for both, and with a rubric
added afterwards. Printed as Markdown. Standard library and our judge only.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pytest_rageval.judges.cache.cached_judge import CachedJudge
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.judges.judge_spec import judge_from_spec
from pytest_rageval.judges.judging import judge_answer
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.model import Answer, Chunk, EvalCase, Gold, Reference

CASES = 20
RUBRICS = ("groundedness", "correctness")
WORDS = "the camera of the rig records frames of the pupil while the mouse runs on its wheel and the clock is shared "


class Counter(BaseHTTPRequestHandler):
    """Replies with the smallest object that fits the schema, and keeps each prompt."""

    protocol_version = "HTTP/1.1"
    prompts: list[list[str]] = []  # noqa: RUF012 - of the one server there is

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.prompts.append([message["content"] for message in asked["messages"]])
        said = fitting(asked["response_format"]["json_schema"]["schema"])
        usage = {"prompt_tokens": sum(map(len, self.prompts[-1])) // 4, "completion_tokens": 50}
        choice = {"message": {"content": json.dumps(said)}, "finish_reason": "stop"}
        body = json.dumps({"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def fitting(schema: dict[str, Any]) -> Any:
    """Return the smallest value of a schema, with 4 for a number."""
    if schema["type"] == "object":
        return {name: fitting(each) for name, each in schema["properties"].items()}
    return {"string": "because", "array": [], "boolean": False}.get(schema["type"], min(4, schema.get("maximum", 4)))


def a_case(number: int) -> tuple[EvalCase, Answer]:
    """Return one case and its answer."""
    chunks = tuple(Chunk(f"c{at}", rel_path=f"{at}.md", text=(f"{number} {at} " + WORDS * 5)[:370]) for at in range(5))
    text = f"It records 30 frames per second [1]. The clock is shared [2]. The wheel of rig {number} turns freely."
    gold = Gold(answers=(f"30 frames per second, on the clock of rig {number}.",))
    cited = (Reference("c0", rel_path="0.md"), Reference("c1", rel_path="1.md"))
    question = f"How fast does the camera of rig {number} record?"
    return EvalCase(str(number), question, gold=gold), Answer(text, chunks=chunks, references=cited, abstained=False)


async def judged(url: str, cache: SqliteCache, rubrics: tuple[str, ...], *, is_joint: bool) -> int:
    """Judge all cases; return the number of judgements that were not in the cache."""
    judge = judge_from_spec(f"openai:counted@{url}", options=EndpointOptions(is_joint=is_joint))
    assert judge is not None
    cached = CachedJudge(judge, cache)
    found = [await judge_answer(cached, *a_case(number), rubrics, 5) for number in range(CASES)]
    await judge.aclose()
    return sum(not judgement.cached for each in found for judgement in each.values())


def row(name: str, prompts: list[list[str]], judgements: int) -> str:
    """Return a row of the table."""
    each = sum(len(text) for prompt in prompts for text in prompt) / CASES
    # The first message of each kind of request is the same in all cases: it is one of so few.
    shared = sum(map(len, {prompt[0] for prompt in prompts}))
    figures = (f"{len(prompts) / CASES:g}", f"{each:,.0f}", f"{shared:,}", f"{judgements / CASES:g}")
    return f"| {name} | " + " | ".join(figures) + " |"


def main() -> int:
    """Print the table."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Counter)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    print(
        "| of a case | requests | characters | the same in every case | judgements |\n| --- | --: | --: | --: | --: |"
    )
    for name, is_joint in (("separate", False), ("together", True)):
        with tempfile.TemporaryDirectory() as folder, closing(SqliteCache(Path(folder) / "cache.sqlite")) as cache:
            for what, rubrics in (("", RUBRICS), (", relevance added", (*RUBRICS, "relevance"))):
                Counter.prompts.clear()
                judgements = asyncio.run(judged(url, cache, rubrics, is_joint=is_joint))
                print(row(name + what, Counter.prompts, judgements))
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
