"""The table of providers, from which everything else takes its lists."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from pytest_rageval.config.options import OPTIONS
from pytest_rageval.io.environment_secrets import secrets_of_environment
from pytest_rageval.judges.judge_spec import KINDS
from pytest_rageval.providers import KEYS, PROVIDERS
from pytest_rageval.web.keys import KEYS_OF_PROVIDERS
from pytest_rageval.web.pages.agent_form import JUDGES, AgentForm

PAGE = (Path(__file__).parents[2] / "docs" / "model-judges.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", PROVIDERS)
def test_a_row_is_all_that_judges_help_form_and_documentation_need(kind: str):
    provider = PROVIDERS[kind]
    module, _, function = provider.factory.partition(":")
    assert callable(getattr(import_module(f"pytest_rageval.llm.{module}"), function))
    assert KINDS[kind].forms == provider.forms
    assert all(f"`{form}`" in PAGE for form in provider.forms)
    if provider.keys:
        assert kind in dict(JUDGES)
        assert AgentForm(name="a", judge_kind=kind).judge_kind == kind
        assert KEYS_OF_PROVIDERS[kind] in provider.keys
    (judge,) = (option for option in OPTIONS if option.name == "judge")
    assert all(form in judge.help for form in provider.forms[:1])


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_masked_however_short_and_documented(key: str):
    assert "short" in secrets_of_environment({key: "short"})
    assert f"`{key}`" in PAGE
