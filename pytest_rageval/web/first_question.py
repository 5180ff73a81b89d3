"""One question to an agent's system before it is saved: its answer, its passages, and a mapping that fits its reply."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.io.environment_secrets import WEB_TOKEN
from pytest_rageval.io.masking import Mask
from pytest_rageval.model import Answer, AskRequest, Chunk
from pytest_rageval.prepare import target_in
from pytest_rageval.text import cut
from pytest_rageval.web.keys import read_env_file
from pytest_rageval.web.security.code_border import check_listed
from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.web.versions.agent_store import AgentStore

QUESTION = "What can you help me with?"
WITHIN_S = 60.0
"""Seconds that the answer may take."""
LOOK_S, MOST_BYTES = 20.0, 2_000_000
"""Limits of a look at a server's raw reply."""
SHOWN = 4_000
ASKED = ("question", "query", "input", "prompt", "message", "text", "q")
ANSWERS = ("answer", "response", "output", "reply", "result", "completion", "text", "content", "message")
LISTS = ("retrieved_chunks", "chunks", "contexts", "passages", "documents", "docs", "source_documents", "sources",
         "source_nodes", "results", "hits", "matches", "references", "citations")  # fmt: skip
TEXTS = ("text", "content", "page_content", "body", "passage", "snippet", "chunk")
PLACES = ("rel_path", "path", "source", "file_path", "file_name", "file", "url", "document")
HEADINGS = ("heading_path", "headings", "heading", "section", "title")
"""Names under which systems take questions and return answers and passages, the likeliest first."""


class FirstAnswer(NamedTuple):
    """What came back.

    found  the values of the form's fields for a mapping that fits; empty if none is needed or found
    raw    the beginning of a server's reply that does not fit
    """

    question: str
    seconds: float
    text: str | None = None
    chunks: Sequence[Chunk] = ()
    problems: Sequence[str] = ()
    found: Mapping[str, str] = {}
    raw: str = ""


def key_environment(env_file: Path | None) -> dict[str, str]:
    """Return the variables of `.env` and the environment without the app's token: an agent's headers may send them."""
    environment = {**({} if env_file is None else read_env_file(env_file)), **os.environ}
    environment.pop(WEB_TOKEN, None)
    return environment


def ask_one_question(
    agent: Agent, agents: AgentStore, root: Path, environment: Mapping[str, str], question: str
) -> FirstAnswer:
    """Ask the system of an agent that may not be saved yet; whatever goes wrong is part of what is returned."""
    question, begun = question.strip() or QUESTION, time.perf_counter()
    if agent.target is None:
        return FirstAnswer(question, 0, problems=["Answers are uploaded for this agent: there is nobody to ask."])
    mask = Mask(())
    try:
        with tempfile.TemporaryDirectory(prefix="rageval-ask-") as folder:
            agents.lay_out(agent, Path(folder))
            settings = load_settings(Path(folder), environment={})
        mask = Mask(settings.secrets(environment))
        check_listed(settings, root)
        answer = asyncio.run(_answer(Project(root, settings), environment, question))
    except RagevalError as error:
        seconds, problems = time.perf_counter() - begun, [str(error)]
    except TimeoutError:
        seconds, problems = time.perf_counter() - begun, [f"no answer within {WITHIN_S:g} s"]
    except Exception as error:  # noqa: BLE001 because the project's own code may raise anything
        seconds, problems = time.perf_counter() - begun, [f"{type(error).__name__}: {error}"]
    else:
        seconds = time.perf_counter() - begun
        if answer.chunks or agent.mapping or agent.target_kind != "http":
            return _shown(FirstAnswer(question, seconds, answer.text, answer.chunks or ()), mask)
        problems = ["No passages came with the answer: faithfulness and retrieval cannot be measured without them."]
        return _shown(FirstAnswer(question, seconds, answer.text, (), problems), mask)
    told = FirstAnswer(question, seconds, problems=problems)
    if agent.target_kind == "http" and agent.mapping is None:
        told = _looked_at(told, agent.target, settings, environment)
    return _shown(told, mask)


async def _answer(project: Project, environment: Mapping[str, str], question: str) -> Answer:
    settings = project.settings
    target = target_in(project, settings.target or "", environment)
    try:
        async with asyncio.timeout(WITHIN_S):
            return await target.ask(AskRequest(question, settings.k, params=settings.ask_params))
    finally:
        await target.aclose()


def _shown(told: FirstAnswer, mask: Mask) -> FirstAnswer:
    """Remove credentials, and cut long texts."""
    text = None if told.text is None else cut(mask.output(told.text), SHOWN)
    problems = [cut(mask.output(problem), SHOWN) for problem in told.problems]
    return told._replace(text=text, problems=problems, raw=cut(mask.output(told.raw), SHOWN))


# ── a server with JSON of its own ─────────────────────────────────────────────────────────────────────────────


def _looked_at(told: FirstAnswer, url: str, settings: Settings, environment: Mapping[str, str]) -> FirstAnswer:
    """Ask the server in the usual ways, and find where its reply holds the answer and the passages."""
    try:
        headers = settings.resolved_headers(environment)
    except SettingsError:
        return told
    for name in ASKED:
        reply = _posted(url, {name: told.question}, headers)
        if reply is not None:
            found = mapping_of_reply(reply)
            raw = json.dumps(reply, ensure_ascii=False, indent=1)
            return told._replace(found={"map_question": name, **found} if found else {}, raw=raw)
    return told


def _posted(url: str, body: Mapping[str, str], headers: Mapping[str, str]) -> Any:
    """Return the JSON that a server replies; None if it refuses the request or replies anything else."""
    sent = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url, json.dumps(body).encode(), sent, method="POST")  # noqa: S310 checked: http
    try:
        with urllib.request.urlopen(request, timeout=LOOK_S) as reply:  # noqa: S310 checked: http
            return json.loads(reply.read(MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None


def mapping_of_reply(reply: Any) -> dict[str, str]:
    """Return the form's fields for a reply: where its answer is, its passages, and their texts and places."""
    paths = dict(_leaves(reply, "", 4))
    answer = _likeliest(paths, ANSWERS, lambda value: isinstance(value, str))
    if answer is None:
        return {}
    found = {"map_answer": answer}
    chunks = _likeliest(paths, LISTS, lambda value: isinstance(value, list) and value and isinstance(value[0], dict))
    if chunks is not None:
        inner = dict(_leaves(paths[chunks][0], "", 3))
        names = {"map_text": TEXTS, "map_path": PLACES, "map_heading": HEADINGS}
        ways = {name: _likeliest(inner, words, lambda value: isinstance(value, str)) for name, words in names.items()}
        found |= {"map_chunks": chunks, **{name: way for name, way in ways.items() if way}}
    return found


def _leaves(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the values of an object by their paths, the outer ones first."""
    if not isinstance(value, dict) or not depth:
        return
    plain = {name: item for name, item in value.items() if isinstance(name, str) and name.isidentifier()}
    yield from ((f"{path}{name}", item) for name, item in plain.items())
    for name, item in plain.items():
        yield from _leaves(item, f"{path}{name}.", depth - 1)


def _likeliest(paths: Mapping[str, Any], words: Sequence[str], fits: Any) -> str | None:
    """Return the path whose last name is the likeliest and whose value fits; the outer of two."""
    return next(
        (path for word in words for path, value in paths.items() if path.rpartition(".")[2] == word and fits(value)),
        None,
    )
