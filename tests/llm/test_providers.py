"""The table of providers, from which everything else takes its lists."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from pytest_rageval.config.options import OPTIONS, kind_of
from pytest_rageval.io.environment_secrets import secrets_of_environment
from pytest_rageval.judges.judge_spec import KINDS
from pytest_rageval.providers import ASKED, JUDGING, KEYS, PROVIDERS
from pytest_rageval.targets.chat_target import ChatTarget
from pytest_rageval.web.keys import KEYS_OF_PROVIDERS
from pytest_rageval.web.pages.agent_form import JUDGES, AgentForm

PAGE = (Path(__file__).parents[2] / "docs" / "model-judges.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", PROVIDERS)
def test_a_row_names_what_is_there(kind: str):
    for place in filter(None, (PROVIDERS[kind].wire, PROVIDERS[kind].factory)):
        module, _, name = place.partition(":")
        assert callable(getattr(import_module(f"pytest_rageval.llm.{module}"), name))


@pytest.mark.parametrize("kind", JUDGING)
def test_a_row_is_all_that_judges_help_form_and_documentation_need(kind: str):
    provider = JUDGING[kind]
    assert KINDS[kind].forms == provider.spellings
    assert all(f"`{form}`" in PAGE for form in provider.spellings)
    if provider.title:
        assert kind in dict(JUDGES)
        assert AgentForm(name="a", judge_kind=kind).judge_kind == kind
        assert KEYS_OF_PROVIDERS[kind] in provider.keys
    assert all(form in help_of("judge") for form in provider.spellings[:1])


@pytest.mark.parametrize("kind", ASKED)
def test_a_row_is_all_that_a_system_under_test_needs(kind: str):
    assert f"{kind}:MODEL@URL" in help_of("target")
    assert kind_of(f"{kind}:m").is_open
    assert AgentForm(name="a", chat_provider=kind).chat_provider == kind
    assert ChatTarget(kind, "m", "http://localhost:1").name == f"{kind}:m@http://localhost:1"


def help_of(name: str) -> str:
    return next(option.help for option in OPTIONS if option.name == name)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_masked_however_short_and_documented(key: str):
    assert "short" in secrets_of_environment({key: "short"})
    assert f"`{key}`" in PAGE
