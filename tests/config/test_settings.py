"""Settings: option over environment over table over default, all problems at once; TOML that we write reads back."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, get_args

import pytest
from hostile import PAYLOADS
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from pytest_rageval.config.files import case_globs, has_table
from pytest_rageval.config.options import OPTIONS
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.config.tables import TABLES
from pytest_rageval.config.toml_text import toml_document, toml_value
from pytest_rageval.errors import SettingsError


def a_project(path: Path, table: str, name: str = "pyproject.toml") -> Path:
    (path / name).write_text(table, encoding="utf-8")
    return path


def test_options_win_over_environment_over_table_over_defaults(tmp_path: Path):
    root = a_project(tmp_path, '[tool.rageval]\ntarget = "table"\njudge = "none"\nk = 3\n')
    environment = {"RAGEVAL_TARGET": "environment", "RAGEVAL_JUDGE": "stub:1"}
    settings = load_settings(root, {"target": "option"}, environment)
    assert (settings.target, settings.judge, settings.k, settings.reports) == ("option", "stub:1", 3, "reports")


def test_rageval_toml_may_hold_the_table_with_or_without_its_name(tmp_path: Path):
    assert load_settings(a_project(tmp_path, "k = 3\n", "rageval.toml"), {}, {}).k == 3
    assert load_settings(a_project(tmp_path, "[tool.rageval]\nk = 4\n", "rageval.toml"), {}, {}).k == 4


@pytest.mark.parametrize(
    ("pasted", "remedies"),
    [
        (
            '[tool.rageval.gates]\nrun = ["mrr >= 1"]\n',
            ["[tool.rageval.gates]: leave out the prefix in this file: [gates]"],
        ),
        (
            '[[tool.rageval.regression]]\nmetric = "mrr"\nmax_drop = 0.1\n[tool.rageval.weights]\nanswer = 2\n',
            ["in this file: [[regression]]", "in this file: [weights]"],
        ),
        ("[tool.rageval]\nk = 3\n", ["[tool.rageval] next to keys without it: leave out the line"]),
        ("[tool.ragevla.gates]\nrun = []\n", ["[tool.ragevla] means nothing"]),
        ("[tool.black]\nline-length = 3\n", ["above the first table"]),
    ],
)
def test_a_table_with_its_prefix_below_keys_without_it_is_refused(tmp_path: Path, pasted: str, remedies: list[str]):
    root = a_project(tmp_path, f'target = "bot:answer"\nknown_failures = "ratchet"\n{pasted}', "rageval.toml")
    with pytest.raises(SettingsError) as raised:
        load_settings(root, {}, {})
    assert len(raised.value.problems) == len(remedies)
    for problem, remedy in zip(raised.value.problems, remedies, strict=True):
        assert problem.startswith("rageval.toml: ")
        assert remedy in problem


def test_every_option_sets_a_setting():
    assert {option.field for option in OPTIONS} <= set(Settings.model_fields)


def test_parameters_are_json_where_they_can_be_and_text_elsewhere(tmp_path: Path):
    root = a_project(tmp_path, "[tool.rageval.params]\nmin_score = 0.1\nrerank = true\n")
    given = ["min_score=0.3", "name=x=y", "flag=false", "list=[1, 2]", "odd=NaN"]
    params = load_settings(root, {"params": given}, {}).params
    assert params == {
        "min_score": 0.3, "rerank": True, "name": "x=y", "flag": False, "list": [1, 2], "odd": "NaN",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("kk = 1", "kk is not a known key; did you mean 'k'?"),
        ("k = 0", "k is 0 (a number), expected a whole number from 1 to 10,000"),
        ('k = "5"', "k is '5' (a string), expected a whole number from 1 to 10,000"),
        ("k = true", "k is true, expected"),
        ("timeout = inf", "timeout is inf"),
        ("timeout = nan", "timeout is nan"),
        ('known_failures = "ratchets"', "expected one of fail, ratchet, report; did you mean 'ratchet'?"),
        ('cases = "evalcases"', "cases is 'evalcases'"),
        ("metrics = 3", "metrics is 3 (a number), expected a table"),
        ("judge_temperature = 3", "judge_temperature is 3 (a number), expected a number from 0 to 2"),
        ("timeout = 0", "timeout is 0 (a number), expected a number above 0"),
        ("look_ahead = 0", "look_ahead is 0 (a number), expected a whole number of 1 or more"),
        ("regression = [3]", "regression[0] is 3 (a number), expected a table such as { metric ="),
        ('metrics = { enabled = "mrr" }', "metrics.enabled is 'mrr' (a string), expected a list of metrics and layers"),
        ('gates = { cases = ["mrr >= 1"] }', "cases"),
        ('abstention = { phrases = ["Ask the desk", "?"] }', "phrases[1] is '?', expected a phrase of two letters"),
        ("abstention = { phrases = [3] }", "abstention.phrases[0] is 3 (a number), expected a string"),
        ('abstention = { phrase = ["Ask the desk"] }', "phrase is not a known key; did you mean 'phrases'?"),
        ("abstention = 3", "abstention is 3 (a number), expected a table with phrases"),
        ('[[regression]]\nmetric = "mrr"', "needs one of max_drop and max_rise"),
        ('[[regression]]\nmetrik = "mrr"\nmax_drop = 1.0', "metrik"),
        ("update_baseline = true", "update_baseline is not a known key"),
        ("[params]\nquestion = 1", "params.question cannot be set"),
        ("[headers]\nX = 3", "headers.X is a number, expected a string"),
        ("target = 3", "target is 3 (a number), expected a target, as in"),
        ("mapping = {}", "mapping is not a known key"),
        ('target = { url = "demo" }', "target.url is 'demo' (a string), expected a URL, as in 'http://localhost:8080'"),
        ("target = { url = 3 }", "target.url is 3 (a number), expected a URL"),
        ('target = { uri = "http://h" }', "target.uri is not a known key; did you mean 'url'?"),
        ('target = { url = "http://h", headers = { a = "b" } }',
         "target.headers is not a known key; it stands beside 'target', not in it: write it above the first [table]"),
        ('gates = { k = 3 }', "gates.k is not a known key; it stands beside 'gates', not in it: write it above"),
        ("target = { mapping = 3 }", "target.mapping is 3"),
        ("target = { mapping = { request = {} } }", "target.mapping.response is missing"),
        ("target.mapping = { request = {}, respones = {} }", "mapping.respones is not a known key; did you mean"),
        ('target.mapping = { request = {}, response = {}, method = "GET" }', "is 'GET' (a string), expected one of"),
        ('target.mapping = { request = {}, response = {}, path = "ask" }', "target.mapping.path is 'ask', expected"),
        ("judge_options.max_token = 5", "judge_options.max_token is not a known key; did you mean 'max_tokens'?"),
        ("judge_options.max_tokens = 0", "max_tokens is 0 (a number), expected a whole number from 16 to 1,000,000"),
        ('judge_options.api = "bedrock"', "judge_options.api is 'bedrock' (a string), expected one of openai, azure"),
        ("judge_options.headers = { X = 5 }", "judge_options.headers.X is a number, expected a string"),
        ('judge_options.headers = ["hunter2hunter2"]', "judge_options.headers is a list, expected a table of strings"),
        ("cases = []", "cases is empty, so that no case would be run"),
        ('run_id = "x"', "run_id is not a known key"),
        ('[[regression]]\nmetric = "mrr"\nmax_drop = 0.1\n[[regression]]\nmetric = "mrr"\nmax_drop = 0.2',
         "regression has 2 entries for 'mrr', of which one would count"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_place_and_value(tmp_path: Path, table: str, said: str):
    root = a_project(tmp_path, table, "rageval.toml")
    with pytest.raises(SettingsError) as raised:
        load_settings(root, {}, {})
    assert any(said in problem for problem in raised.value.problems), raised.value.problems
    assert all("\n" not in problem and "rageval.toml" in problem for problem in raised.value.problems)
    assert not any("hunter2hunter2" in problem for problem in raised.value.problems)


def test_all_problems_come_together(tmp_path: Path):
    root = a_project(tmp_path, "kk = 1\nretries = -1\nconcurrency = 0\n", "rageval.toml")
    with pytest.raises(SettingsError) as raised:
        load_settings(root, {"k": "x"}, {})
    assert len(raised.value.problems) == 4


MAPPED = """
[target]
url = "http://localhost:9000"
[target.mapping]
path = "/ask"
request = { query = "{question}", list = [1, "{k}"] }
response = { answer = "text", retrieved_chunks = { each = "hits", text = "body" } }
"""


def test_a_target_may_be_a_table_with_a_mapping(tmp_path: Path):
    settings = load_settings(a_project(tmp_path, MAPPED, "rageval.toml"), {}, {})
    assert settings.target == "http://localhost:9000"
    assert settings.mapping is not None
    assert (settings.mapping.method, settings.mapping.path) == ("POST", "/ask")
    assert settings.mapping.request == {"query": "{question}", "list": [1, "{k}"]}
    bare = a_project(tmp_path, '[target]\nurl = "http://localhost:9000"\n', "rageval.toml")
    assert load_settings(bare, {}, {}).mapping is None


def test_another_url_keeps_the_mapping_and_another_kind_of_target_leaves_it(tmp_path: Path):
    root = a_project(tmp_path, MAPPED, "rageval.toml")
    settings = load_settings(root, {}, {"RAGEVAL_TARGET": "https://staging"})
    assert settings.target == "https://staging"
    assert settings.mapping is not None
    for other in ("demo", "openai:m@http://localhost:9000"):
        assert load_settings(root, {"target": other}, {}).mapping is None


def test_the_url_of_a_mapping_may_come_from_the_command_line_alone(tmp_path: Path):
    table = '[target.mapping]\nrequest = { q = "{question}" }\nresponse = { answer = "a" }\n'
    root = a_project(tmp_path, table, "rageval.toml")
    assert load_settings(root, {}, {}).target is None
    assert load_settings(root, {"target": "http://host"}, {}).mapping is not None


@pytest.mark.parametrize("content", [b"k = ", b"\xff\xfe", b"[tool]\nrageval = 3\n"])
def test_a_broken_file_is_one_problem(tmp_path: Path, content: bytes):
    (tmp_path / "rageval.toml").write_bytes(content)
    with pytest.raises(SettingsError, match=r"^rageval\.toml"):
        load_settings(tmp_path, {}, {})


def test_headers_come_from_the_environment_when_they_say_so(tmp_path: Path):
    root = a_project(tmp_path, '[tool.rageval.headers]\nAuthorization = "env:BOT_TOKEN"\nX = "plain"\n')
    settings = load_settings(root, {}, {})
    assert settings.resolved_headers({"BOT_TOKEN": "t"}) == {"Authorization": "t", "X": "plain"}
    with pytest.raises(SettingsError, match="BOT_TOKEN is not set"):
        settings.resolved_headers({})
    with pytest.raises(SettingsError, match=r"^headers\.Authorization cannot be sent, .* BOT_TOKEN is empty"):
        settings.resolved_headers({"BOT_TOKEN": " "})


def test_what_a_judges_provider_is_told_is_a_table_of_its_own(tmp_path: Path):
    table = '[tool.rageval.judge_options]\nmax_tokens = 500\napi = "azure"\nheaders = { X = "env:GATEWAY" }\n'
    settings = load_settings(a_project(tmp_path, table), {}, {})
    assert (settings.judge_options.max_tokens, settings.judge_options.api) == (500, "azure")
    assert settings.resolved_judge_headers({"GATEWAY": "t"}) == {"X": "t"}
    assert "a-secret-value" in settings.secrets({"GATEWAY": "a-secret-value"})
    with pytest.raises(
        SettingsError,
        match=r"judge_options.headers.X cannot be sent, because .* GATEWAY is not set",
    ):
        settings.resolved_judge_headers({})


def test_a_project_without_a_table_is_seen_as_such(tmp_path: Path):
    assert not has_table(tmp_path)
    assert not has_table(a_project(tmp_path, "[tool.other]\n"))
    assert has_table(a_project(tmp_path, "[tool.rageval]\n"))
    assert case_globs(a_project(tmp_path, '[tool.rageval]\ncases = ["x/*.jsonl"]\n')) == ("x/*.jsonl",)


@pytest.mark.parametrize("written", ['["Ask the desk"]', '"Ask the desk"'])
def test_the_refusals_of_the_bot_are_a_list_or_a_single_phrase(tmp_path: Path, written: str):
    (tmp_path / "pyproject.toml").write_text(f"[tool.rageval.abstention]\nphrases = {written}\n")
    assert load_settings(tmp_path, environment={}).abstention.phrases == ("Ask the desk",)


def test_a_tolerance_given_twice_on_the_command_line_is_said(tmp_path: Path):
    with pytest.raises(SettingsError, match="--rageval-regression has 2 entries for 'mrr', of which one would count"):
        load_settings(tmp_path, {"tolerated": ["mrr drop 0.1", "mrr drop 0.2"]}, {})


@pytest.mark.parametrize("name", ["latest", "baseline"])
def test_a_run_cannot_be_called_like_a_reference(tmp_path: Path, name: str):
    with pytest.raises(SettingsError, match=f"--rageval-run-id: '{name}' stands for another run"):
        load_settings(tmp_path, {"run_id": name}, {})


def test_a_variable_that_means_nothing_is_said_with_what_was_probably_meant(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"RAGEVAL_TARGT means nothing; did you mean 'RAGEVAL_TARGET'\?"):
        load_settings(tmp_path, {}, {"RAGEVAL_TARGT": "demo"})
    (tmp_path / "pyproject.toml").write_text(
        '[tool.rageval]\nheaders = { X-Key = "env:RAGEVAL_BOT_KEY" }\n', encoding="utf-8"
    )
    load_settings(tmp_path, {}, {"RAGEVAL_BOT_KEY": "k", "RAGEVAL_TARGET_TOKEN": "t"})


WRONG = ("3", "0", "-1", "1.5", "true", "nan", '"?"', '""', "[]", "[3]", "[[]]", "{}", "{ x = 3 }", "{ x = [] }")
"""Values of every kind that TOML has."""
OF_PYTHON = re.compile(
    r"\b(tuple|dict|dictionary|a mapping|str|int|bool|boolean|float|None|NoneType|True|False|Optional|Union|Literal|"
    r"dataclass|instance|iterable|pydantic|Field|Input|validation|valid|field required|"
    r"greater than|less than|Regression|Gates|Abstention|JudgeOptions|TargetMapping)\b"
)
OF_REGRESSION = ("metric", "max_drop", "max_rise", "significant")
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


@pytest.mark.parametrize("place", [*places(), "metrics.token_f1", *(f"[[regression]]\n{key}" for key in OF_REGRESSION)])
def test_no_setting_speaks_of_python(tmp_path: Path, place: str):
    said = {value: problems(tmp_path, f"{place} = {value}") for value in WRONG}
    assert any(said.values()), "takes everything"
    for lines in said.values():
        for line in lines:
            assert not OF_PYTHON.search(line.removeprefix("rageval.toml: ")), line
            assert line.startswith("rageval.toml: ")


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(PAYLOADS)
VALUES = st.recursive(
    TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_a_table_reads_back_as_it_was(table: dict[str, Any]):
    assert tomllib.loads(toml_document(table)) == table


@pytest.mark.parametrize("text", ['a\n"b"\n', '"""\n', 'x\ny"', "\n\n", "a\\\nb", 'a"""\nb""', "tab\tand\x00nul\nline"])
def test_a_text_of_several_lines_stands_over_several_lines_and_reads_back(text: str):
    written = toml_document({"prompt": text})
    assert tomllib.loads(written) == {"prompt": text}
    assert written.count("\n") == text.count("\n") + 2


def test_the_line_ends_of_windows_read_back():
    table = {"prompt": "a\r\nb\n", "inner": {"list": ["c\r\nd"]}}
    assert tomllib.loads(toml_document(table)) == table


@pytest.mark.parametrize("write", [toml_value, toml_document])
def test_what_toml_cannot_hold_is_refused(write: Callable[[dict[str, Any]], str]):
    with pytest.raises(ValueError, match="no null"):
        write({"a": [None]})


@pytest.mark.parametrize("value", [math.inf, -math.inf, date(2026, 5, 1)], ids=str)
def test_numbers_without_end_and_dates_of_a_hand_written_file_stay_what_they_are(value: object):
    assert tomllib.loads(toml_document({"n": value})) == {"n": value}
