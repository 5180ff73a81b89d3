"""One question to an agent's system before it is saved: its answer, its passages, and a mapping that fits its reply."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pytest_rageval.config.project import Project
from pytest_rageval.errors import RagevalError
from pytest_rageval.http.address import endpoint
from pytest_rageval.http.call_limit import IMPATIENT
from pytest_rageval.io.masking import Mask
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.model import Answer, AskRequest, Chunk, Problem
from pytest_rageval.run.ask import ask_system
from pytest_rageval.run.prefetch import BackgroundLoop, LoopBlockedError
from pytest_rageval.run.prepare import target_in
from pytest_rageval.targets.first_contact import REFUSED, FirstContact, first_contact, places_line
from pytest_rageval.targets.http_target import OTHER_API
from pytest_rageval.targets.target import Connection
from pytest_rageval.text import cut
from pytest_rageval.web.site import check_listed
from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.web.versions.agent_store import configured

QUESTION = "What can you help me with?"
WITHIN_S = 60.0
"""Seconds that the answer may take."""
LOOK_S, MOST_BYTES = 20.0, 2_000_000
"""Limits of each attempt to find out how a server takes a question."""
SHOWN = 4_000
NO_SUCH_PLACE = (404, 405)
NO_ANSWER_IN_TIME = f"no answer within {WITHIN_S:g} s"
OTHER_FIELD = "Does it take the question in a field of its own? Name it above, and ask again."
NO_PASSAGES = "No passages came with the answer: faithfulness and retrieval cannot be measured without them."


class FirstAnswer(NamedTuple):
    """What came back.

    places   how the system names the places of its passages
    mapping  one that fits a server's own JSON; None if none is needed or found
    url      where the answer was found, if it was looked for
    is_refused  whether the server wants a key, or another one
    """

    question: str
    seconds: float = 0.0
    text: str | None = None
    chunks: Sequence[Chunk] = ()
    problems: Sequence[str] = ()
    places: str = ""
    mapping: Mapping[str, Any] | None = None
    url: str = ""
    is_refused: bool = False

    @property
    def mapping_in_words(self) -> Sequence[tuple[str, str]]:
        """Return what the mapping finds where, for people."""
        if not self.mapping:
            return ()
        response = self.mapping.get("response", {})
        found = [("question", name) for name in self.mapping.get("request", {})][:1]
        if isinstance(response.get("answer"), str):
            found.append(("answer", response["answer"]))
        chunks = response.get("retrieved_chunks")
        if isinstance(chunks, Mapping):
            chunks = chunks.get("each")
        if isinstance(chunks, str):
            found.append(("passages", chunks))
        return found


def ask_one_question(
    agent: Agent, registry: Registry, root: Path, environment: Mapping[str, str], question: str, key: str = ""
) -> FirstAnswer:
    """Ask the system of an agent that may not be saved yet; whatever goes wrong is part of what is returned.

    `key`: the field in which its server takes the question, if that is all that is known of it.
    """
    begun = time.perf_counter()
    told = FirstAnswer(question.strip() or QUESTION)
    if agent.target is None:
        return told._replace(problems=["Answers are uploaded for this agent: there is nobody to ask."])
    # Until the settings are read, no secret is known.
    mask = Mask(())
    try:
        with configured(agent, registry) as (settings, _):
            pass
        mask = Mask(settings.secrets(environment))
        # A target may be an importable name: without the list, a form of the browser would run any code.
        check_listed(settings, root)
        with closing(BackgroundLoop(min(WITHIN_S, settings.longest_call))) as loop:
            told = loop.run(_told(told, agent, registry, Project(root, settings), environment, key))
    except TimeoutError:
        told = told._replace(problems=[NO_ANSWER_IN_TIME])
    except LoopBlockedError as error:
        told = told._replace(problems=[str(error)])
    except RagevalError as error:
        told = told._replace(problems=error.problems)
    except Exception as error:  # noqa: BLE001 because the project's own code may raise anything
        told = told._replace(problems=[f"{type(error).__name__}: {error}"])
    text = None if told.text is None else cut(mask.output(told.text), SHOWN)
    problems = [cut(mask.output(problem), SHOWN) for problem in told.problems]
    places = mask.output(told.places)
    return told._replace(seconds=time.perf_counter() - begun, text=text, problems=problems, places=places)


async def _told(
    told: FirstAnswer,
    agent: Agent,
    registry: Registry,
    project: Project,
    environment: Mapping[str, str],
    key: str,
) -> FirstAnswer:
    """Ask through the target. If a server without a mapping cannot be read, find out how it replies, and ask it so."""
    answer = await _answer(project, environment, told.question)
    if not isinstance(answer, Problem):
        return _with_answer(told, answer, agent)
    told = told._replace(is_refused=answer.status in REFUSED)
    if agent.target_kind != "http" or agent.mapping is not None:
        return told._replace(problems=[answer.message])
    contact = await _contact(project, environment, told.question, key)
    # The path may be a wrong guess of the person: the usual paths are tried at the root of the server.
    if not contact.is_answered and answer.status in NO_SUCH_PLACE:
        of_server = project.settings.model_copy(update={"target": _server_of(project.settings.target or "")})
        found = await _contact(Project(project.root, of_server), environment, told.question, key)
        if found.is_answered or found.is_refused:
            contact = found
    if not contact.is_usable:
        problems = list(contact.findings)
        if OTHER_API in answer.message:
            problems.append(OTHER_FIELD)
        return told._replace(problems=problems, is_refused=told.is_refused or contact.is_refused)

    mapping = dict(contact.mapping or {})
    path = mapping.pop("path", "")
    url = endpoint(contact.url, path) if path else contact.url
    told = told._replace(mapping=mapping or None, url=url, is_refused=False)
    mapped = agent.model_copy(update={"target": url, "mapping": mapping or None})
    with configured(mapped, registry) as (settings, _):
        mapped_project = Project(project.root, settings)
    answer = await _answer(mapped_project, environment, told.question)
    if isinstance(answer, Problem):
        return told._replace(problems=[answer.message], is_refused=answer.status in REFUSED)
    missing = [line for line in contact.findings if line.startswith("missing")]
    told = _with_answer(told, answer, mapped)
    return told._replace(problems=missing or told.problems)


def _with_answer(told: FirstAnswer, answer: Answer, agent: Agent) -> FirstAnswer:
    chunks = answer.chunks or ()
    problems = [NO_PASSAGES] if agent.target_kind == "http" and not chunks else []
    places = places_line(chunks) if chunks else ""
    return told._replace(text=answer.text, chunks=chunks, problems=problems, places=places)


async def _answer(project: Project, environment: Mapping[str, str], question: str) -> Answer | Problem:
    settings = project.settings
    target = target_in(project, settings.target or "", environment)
    request = AskRequest(question, settings.k, params=settings.ask_params)
    try:
        limit = asyncio.timeout(WITHIN_S)
        return await ask_system(target, request, Mask(settings.secrets(environment)), limit, f"{WITHIN_S:g} s")
    finally:
        await target.aclose()


async def _contact(project: Project, environment: Mapping[str, str], question: str, key: str) -> FirstContact:
    settings = project.settings
    headers = settings.resolved_headers(environment)
    connection = Connection(
        timeout=LOOK_S, limits=IMPATIENT, max_bytes=MOST_BYTES, headers=headers, environment=environment
    )
    async with asyncio.timeout(WITHIN_S):
        return await first_contact(settings.target or "", question, connection, key)


def _server_of(url: str) -> str:
    """Return a URL without its path: where the usual paths are tried if nothing answers at this one."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
