"""The demo system as an agent and its questions as a dataset: something to run before one has any of one's own."""

from __future__ import annotations

from contextlib import suppress

from pytest_rageval.cases.loading import load_file
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset import DatasetAbout
from pytest_rageval.web.versions.dataset_store import DatasetStore
from pytest_rageval.web.versions.new_agent import new_agent
from pytest_rageval.web.versions.slugs import slug_of
from pytest_rageval.web.versions.version_folder import NewerVersion
from pytest_rageval.workbench.scaffold.demo_project import shipped

AGENT, QUESTIONS = "Demo", "Demo questions"
CASE_FILES = ("notes_anchors.jsonl", "reference.csv", "sanity.jsonl")
"""Those of the shipped case files whose cases an answer, or what was retrieved, is compared with."""


def save_demo_agent(store: AgentStore) -> str:
    """The slug of the demo as an agent, which is made unless one of that name is there."""
    slug = slug_of(AGENT)
    about = "The small RAG system inside the package: real retrieval over shipped notes, no model, no network."
    with suppress(NewerVersion):
        store.save(slug, new_agent(store.registry, AGENT, about), "", 0)
    return slug


def save_demo_questions(store: DatasetStore) -> str:
    """The slug of the demo's questions as a dataset, which is made unless one of that name is there."""
    slug = slug_of(QUESTIONS)
    paths = [shipped("evalcases") / name for name in CASE_FILES]
    cases = [case for path in paths for case in load_file(path, path.parent).cases]
    about = DatasetAbout(
        name=QUESTIONS, description="What the notes of the demo answer, and what they do not.",
        origin=" + ".join(CASE_FILES),
    )  # fmt: skip
    with suppress(NewerVersion):
        store.save(slug, about, cases, "", 0)
    return slug
