"""Two buttons for whoever has nothing yet: the demo system as an agent, and its questions as a dataset."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from pytest_rageval.web.forms.submitted import Submitted
from pytest_rageval.web.pages.agents import Agents
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.rendering import path_to, see
from pytest_rageval.web.versions.demo_versions import save_demo_agent, save_demo_questions

router = APIRouter()


@router.post("/demo/agent")
def make_demo_agent(_: Submitted, store: Agents) -> Response:
    return see(path_to("agents", save_demo_agent(store)))


@router.post("/demo/questions")
def make_demo_questions(_: Submitted, store: Datasets) -> Response:
    return see(path_to("datasets", save_demo_questions(store)))
