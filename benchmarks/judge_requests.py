"""What does judging send? `python benchmarks/judge_requests.py [--peers]`: requests, characters and tokens a case.

A server on loopback counts: the same cases (a question, an answer of three sentences, a reference, five chunks of 370
characters) are judged for faithfulness and correctness, with separate requests and with one for both, and with a rubric
added afterwards. With `--peers`, deepeval and ragas judge them as well, each installed into an environment of its own.
Tokens are those of OpenAI's vocabulary o200k_base, where the tokenizer of the npm registry can be had. Printed as
Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from typing import Any

from environments import PLACE, SCRIPTS, CannotBeInstalled, installed

from pytest_rageval.judges.cache.cached_judge import CachedJudge
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.judges.judge_spec import judge_from_spec
from pytest_rageval.judges.judging import judge_answer
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.model import Answer, Chunk, EvalCase, Gold, Reference

CASES = 20
PAIRS = (("faithfulness", "correctness"), ("groundedness", "correctness"))
WORDS = "the camera of the rig records frames of the pupil while the mouse runs on its wheel and the clock is shared "
SENTENCES = (
    "It records 30 frames per second [1].",
    "The clock is shared [2].",
    "The wheel of the rig turns freely.",
)
REASONED: dict[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "score": {"type": "integer"}},
}
"""What deepeval's G-Eval asks for without a schema."""
PEERS = ("deepeval", "ragas")
TOKENIZER = "gpt-tokenizer"
HEAD = ("of a case", "requests", "characters", "tokens", "the same in every case", "judgements")


class Counter(BaseHTTPRequestHandler):
    """Replies with an object that fits the schema, and keeps each prompt, with the name of its schema."""

    protocol_version = "HTTP/1.1"
    prompts: list[tuple[str, str]] = []  # noqa: RUF012 - of the one server there is

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = "".join(text_of(message["content"]) for message in asked["messages"])
        schema, name = schema_of(asked, prompt)
        self.prompts.append((name, prompt))
        content = json.dumps(self.said(schema, name, prompt))
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if "tools" in asked:
            function = {"name": asked["tools"][0]["function"]["name"], "arguments": content}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
        reply = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_767_225_600,
            "model": asked["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": len(prompt) // 4,
                "completion_tokens": 50,
                "total_tokens": len(prompt) // 4 + 50,
            },
        }
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def said(self, schema: dict[str, Any], _name: str, _prompt: str) -> Any:
        """Return the object to reply."""
        return fitting(schema, schema)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def text_of(content: str | list[dict[str, str]] | None) -> str:
    """Return the text of a message, which may be a list of parts."""
    return "".join(part.get("text", "") for part in content) if isinstance(content, list) else content or ""


def schema_of(asked: dict[str, Any], prompt: str) -> tuple[dict[str, Any], str]:
    """Return the schema that a request asks for, as its format, as a tool or in its text, and a name for it."""
    if "tools" in asked:
        function = asked["tools"][0]["function"]
        return function["parameters"], function["name"]
    if described := asked.get("response_format", {}).get("json_schema"):
        return described["schema"], described["name"]
    start = prompt.find('{"', max(prompt.find("JSON Schema"), 0))
    schema = json.JSONDecoder().raw_decode(prompt, start)[0] if "JSON Schema" in prompt else REASONED
    return schema, schema.get("title", "text")


def fitting(schema: dict[str, Any], whole: dict[str, Any], name: str = "") -> Any:
    """Return a plausible value of a schema: three entries a list, sentences of the answer for texts, 4 for numbers."""
    if "$ref" in schema:
        return fitting(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole, name)
    for choices in ("anyOf", "oneOf"):
        if choices in schema:
            return fitting(schema[choices][0], whole, name)
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    kind = schema.get("type", "string")
    if kind == "object":
        return {key: fitting(each, whole, key) for key, each in schema.get("properties", {}).items()}
    if kind == "array":
        return [
            fitting(schema["items"], whole, f"{name} {at}") for at in range(5 if name == "truths" else len(SENTENCES))
        ]
    if kind == "string":
        return "yes" if name == "verdict" else SENTENCES[int(name[-1]) % len(SENTENCES) if name[-1:].isdigit() else 0]
    return False if kind == "boolean" else 1 if name == "verdict" else min(4, schema.get("maximum", 4))


def a_case(number: int) -> tuple[EvalCase, Answer]:
    """Return one case and its answer."""
    chunks = tuple(Chunk(f"c{at}", rel_path=f"{at}.md", text=(f"{number} {at} " + WORDS * 5)[:370]) for at in range(5))
    text = " ".join((f"Rig {number}:", *SENTENCES))
    gold = Gold(answers=(f"30 frames per second, on the clock of rig {number}.",))
    cited = (Reference("c0", rel_path="0.md"), Reference("c1", rel_path="1.md"))
    question = f"How fast does the camera of rig {number} record?"
    return EvalCase(str(number), question, gold=gold), Answer(text, chunks=chunks, references=cited, abstained=False)


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Yield the URL of a server on loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


# ── ours ──────────────────────────────────────────────────────────────────────────────────────────────────────


def our_rows(url: str) -> Iterator[list[str]]:
    """Judge the cases in both modes; yield a row for each, and one for a rubric that is added to a judged run."""
    for pair in PAIRS:
        for mode, is_joint in (("separate", False), ("together", True)):
            with tempfile.TemporaryDirectory() as folder, closing(SqliteCache(Path(folder) / "cache.sqlite")) as cache:
                for added in ((), ("relevance",)) if pair == PAIRS[-1] else ((),):
                    with counted() as prompts:
                        judgements = asyncio.run(judged(url, cache, (*pair, *added), is_joint=is_joint))
                    what = "relevance added" if added else " and ".join(pair)
                    yield row(f"ours, {mode}: {what}", prompts, CASES, f"{judgements / CASES:g}")


async def judged(url: str, cache: SqliteCache, rubrics: tuple[str, ...], *, is_joint: bool) -> int:
    """Judge all cases; return the number of judgements that were not in the cache."""
    judge = judge_from_spec(f"openai:counted@{url}", options=EndpointOptions(is_joint=is_joint))
    assert judge is not None
    cached = CachedJudge(judge, cache)
    found = [await judge_answer(cached, *a_case(number), rubrics, 5) for number in range(CASES)]
    await judge.aclose()
    return sum(not judgement.cached for each in found for judgement in each.values())


# ── others ────────────────────────────────────────────────────────────────────────────────────────────────────


def peer_row(name: str, url: str) -> list[str]:
    """Let another tool judge the cases for faithfulness and correctness."""
    try:
        peer = installed(name)
    except CannotBeInstalled as problem:
        return [f"{name}: cannot be installed: {problem}", *[""] * (len(HEAD) - 1)]
    with tempfile.TemporaryDirectory() as folder, counted() as prompts:
        cases = Path(folder) / "cases.json"
        cases.write_text(json.dumps([peer_case(number) for number in range(CASES)]), encoding="utf-8")
        script = SCRIPTS / f"judged_by_{name}.py"
        subprocess.run(
            [peer.interpreter, script, f"{url}/v1", cases],
            cwd=folder,
            env={**os.environ, **peer.environment(Path(folder))},
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=600,
        )
    return row(f"{name} {peer.version}: faithfulness and correctness", prompts, CASES, "2")


def peer_case(number: int) -> dict[str, Any]:
    """Return a case as plain values."""
    case, answer = a_case(number)
    chunks = [chunk.text for chunk in answer.chunks or ()]
    return {
        "question": case.question,
        "answer": answer.text,
        "reference": (case.gold.answers or ("",))[0],
        "chunks": chunks,
    }


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def counted() -> Iterator[list[tuple[str, str]]]:
    """Yield the prompts that the server gets inside the block."""
    Counter.prompts.clear()
    prompts: list[tuple[str, str]] = []
    yield prompts
    prompts += Counter.prompts


def row(name: str, prompts: Sequence[tuple[str, str]], cases: int, judgements: str) -> list[str]:
    """Return a row of the table; what is the same in every case is the common beginning of each kind of prompt."""
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for kind, prompt in prompts:
        kinds[kind].append(prompt)
    shared = [common_beginning(alike) for alike in kinds.values()]
    texts = [prompt for _, prompt in prompts]
    every, fixed = tokens(["".join(texts)]), tokens(shared)
    characters = f"{sum(map(len, texts)) / cases:,.0f}"
    same = f"{sum(map(len, shared)):,}" + ("" if fixed is None else f" ({fixed:,} tokens)")
    return [
        name,
        f"{len(prompts) / cases:g}",
        characters,
        "–" if every is None else f"{every / cases:,.0f}",
        same,
        judgements,
    ]


def common_beginning(texts: Sequence[str]) -> str:
    """Return the longest text with which all of these begin."""
    first, last = min(texts), max(texts)
    return first[: next((at for at, pair in enumerate(zip(first, last, strict=False)) if len({*pair}) > 1), len(first))]


def tokens(texts: Sequence[str]) -> int | None:
    """Return the number of tokens of all texts together; None while the tokenizer is not installed."""
    if not (PLACE / TOKENIZER / ".ready").exists():
        return None
    script = (
        'const t=require("gpt-tokenizer/encoding/o200k_base");let s="";process.stdin.on("data",d=>s+=d).on("end",()=>'
    )
    script += "console.log(JSON.parse(s).reduce((n,x)=>n+t.encode(x).length,0)))"
    done = subprocess.run(
        ["node", "-e", script],
        cwd=PLACE / TOKENIZER,
        input=json.dumps(list(texts)),
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What does judging send?")
    parser.add_argument("--peers", action="store_true", help="let deepeval and ragas judge as well")
    options = parser.parse_args(arguments)
    if options.peers:
        with suppress(CannotBeInstalled):
            installed(TOKENIZER)
    print(f"| {' | '.join(HEAD)} |\n| --- |{' --: |' * (len(HEAD) - 1)}")
    with served(Counter) as url:
        for cells in chain(our_rows(url), (peer_row(name, url) for name in PEERS if options.peers)):
            print(f"| {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
