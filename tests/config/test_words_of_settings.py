"""What is wrong with a setting is said in the words of who wrote it: no word of Python or of a library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.config.tables import TABLES
from pytest_rageval.errors import SettingsError

WRONG = ("3", "0", "-1", "1.5", "true", "nan", '"?"', '""', "[]", "[3]", "[[]]", "{}", "{ x = 3 }", "{ x = [] }")
"""Values of every kind that TOML has."""
OF_PYTHON = re.compile(
    r"\b(tuple|dict|dictionary|a mapping|str|int|bool|boolean|float|None|NoneType|True|False|Optional|Union|Literal|"
    r"dataclass|instance|iterable|pydantic|Field|Input|validation|valid|field required|"
    r"greater than|less than|Regression|Gates|Abstention|JudgeOptions|TargetMapping)\b"
)
ONLY_OPTIONS = {"update_baseline", "force", "run_id", "dry_run", "gate", "tolerated", "retrieval_only", "description",
                "shard", "resume"}  # fmt: skip


def places() -> Iterator[str]:
    """All keys of the table, those of its tables too, as TOML writes them."""
    elsewhere = {"enabled": "metrics.enabled", "metric_options": "metrics", "mapping": "target.mapping"}
    for name, field in Settings.model_fields.items():
        if name in ONLY_OPTIONS:
            continue
        yield elsewhere.get(name, name)
        inner = TABLES.get(name)
        if inner is not None and name != "regression":
            yield from (f"{elsewhere.get(name, name)}.{key}" for key in inner.model_fields)
        assert not any(isinstance(of, type) and issubclass(of, BaseModel) and name not in TABLES
                       for of in (field.annotation, *get_args(field.annotation)))  # fmt: skip


def problems(tmp_path: Path, table: str) -> tuple[str, ...]:
    (tmp_path / "rageval.toml").write_text(table, encoding="utf-8")
    try:
        load_settings(tmp_path, {}, {})
    except SettingsError as error:
        return error.problems
    return ()


@pytest.mark.parametrize("place", [*places(), "metrics.token_f1"])
def test_no_setting_speaks_of_python(tmp_path: Path, place: str):
    said = {value: problems(tmp_path, f"{place} = {value}") for value in WRONG}
    assert any(said.values()), "takes everything"
    for lines in said.values():
        for line in lines:
            assert not OF_PYTHON.search(line.removeprefix("rageval.toml: ")), line
            assert line.startswith("rageval.toml: ")


@pytest.mark.parametrize("key", ["metric", "max_drop", "max_rise", "significant"])
def test_no_entry_of_the_regression_list_speaks_of_python(tmp_path: Path, key: str):
    for value in WRONG:
        for line in problems(tmp_path, f"[[regression]]\n{key} = {value}"):
            assert not OF_PYTHON.search(line), line


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('cases = "evalcases"', "cases is 'evalcases' (a string), expected a list of globs, as in [\"evalcases/"),
        ("judge_temperature = 3", "judge_temperature is 3 (a number), expected a number from 0 to 2"),
        ("timeout = 0", "timeout is 0 (a number), expected a number above 0"),
        ("look_ahead = 0", "look_ahead is 0 (a number), expected a whole number of 1 or more"),
        ('gates = { case = "mrr >= 1" }', "expected a list of gates, as in"),
        ("regression = [3]", "regression[0] is 3 (a number), expected a table such as { metric ="),
        ('metrics = { enabled = "mrr" }', "metrics.enabled is 'mrr' (a string), expected a list of metrics and layers"),
        ("metrics = { mrr = 3 }", "metrics.mrr is 3 (a number), expected a table"),
        ("gates = 3", "gates is 3 (a number), expected a table with case, run"),
        ('folder_mode = "of"', "expected one of off, on, on_with_fallback; did you mean 'off'?"),
    ],
)
def test_what_belongs_there_is_said_with_its_limits(tmp_path: Path, table: str, problem: str):
    assert problem in problems(tmp_path, table)[0]
