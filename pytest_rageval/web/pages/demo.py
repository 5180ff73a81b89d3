"""Two buttons for the first steps: save the demo system as an agent, and its questions as a dataset."""

from __future__ import annotations

from contextlib import suppress

from fastapi import APIRouter
from starlette.responses import Response

from pytest_rageval.cases.loading import load_file
from pytest_rageval.tools.scaffold import shipped
from pytest_rageval.web.forms import Submitted
from pytest_rageval.web.pages.agents import Agents
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.rendering import path_to, redirect
from pytest_rageval.web.versions.agent_store import AgentStore, new_agent
from pytest_rageval.web.versions.dataset_store import DatasetAbout, DatasetStore
from pytest_rageval.web.versions.version_folder import NewerVersion, slug_of

router = APIRouter()
AGENT, QUESTIONS = "Demo", "Demo questions"
CASE_FILES = ("notes_anchors.jsonl", "reference.csv", "sanity.jsonl")
"""The shipped case files with gold for answers or for retrieved chunks."""


@router.post("/demo/agent")
def make_demo_agent(_: Submitted, store: Agents) -> Response:
    return redirect(path_to("agents", save_demo_agent(store)))


@router.post("/demo/questions")
def make_demo_questions(_: Submitted, store: Datasets) -> Response:
    return redirect(path_to("datasets", save_demo_questions(store)))


def save_demo_agent(store: AgentStore) -> str:
    """Save the demo as an agent unless it exists, and return its slug."""
    slug = slug_of(AGENT)
    about = "The small RAG system inside the package: real retrieval over shipped notes, no model, no network."
    with suppress(NewerVersion):
        store.save(slug, new_agent(AGENT, about), "", 0)
    return slug


def save_demo_questions(store: DatasetStore) -> str:
    """Save the demo's questions as a dataset unless it exists, and return its slug."""
    slug = slug_of(QUESTIONS)
    paths = [shipped("evalcases") / name for name in CASE_FILES]
    cases = [case for path in paths for case in load_file(path, path.parent).cases]
    about = DatasetAbout(
        name=QUESTIONS,
        description="What the notes of the demo answer, and what they do not.",
        origin=" + ".join(CASE_FILES),
    )
    with suppress(NewerVersion):
        store.save(slug, about, cases, "", 0)
    return slug
