"""Write the reference pages that are made from the code: options, commands, fields, rubrics, the Python interface.

Run by `make docs`. The tests compare the pages with the code, as the wheel holds them too.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from reference_commands import commands_page
from reference_tables import assertion_types_page, fixtures_page, rubrics_page

import pytest_rageval
from pytest_rageval.cases.schema import case_schema
from pytest_rageval.cli.schema import fields_of_run_files
from pytest_rageval.config.options import OPTIONS, Option
from pytest_rageval.config.settings import ENVIRONMENT, Settings
from pytest_rageval.plugin import hookspecs

DOCS = Path(__file__).parent
SEE = {
    "target": "targets.md",
    "judge": "judges.md",
    "judge_cache": "judges.md#the-cache",
    "judge_options": "judge-providers.md#options-of-a-provider",
    "judge_requests": "judge-cheaply.md",
    "rubrics": "rubrics.md",
    "max_cost": "judge-cheaply.md",
    "gate": "gates.md#writing-a-gate",
    "gates": "gates.md#writing-a-gate",
    "regression": "gates.md#baseline-and-regression-gates",
    "known_failures": "gates.md#known-failures",
    "ignore_invariants": "compare.md#what-is-compared",
    "repeat": "repeats.md",
    "history": "follow-ups.md#what-a-turn-sees",
    "on_turn_failure": "conversations.md#after-an-error",
    "rewrites": "follow-ups.md#rewrites",
    "pass_rule": "repeats.md",
    "repeat_until": "repeats.md#stop-when-decided",
    "confirm": "flaky.md#confirm-before-red",
    "shard": "runs.md#shards",
    "resume": "runs.md#runs-that-were-interrupted",
    "redact": "secrets.md",
    "store_full_text": "secrets.md",
    "version": "configuration.md#versions",
    "versions": "configuration.md#versions",
    "prices": "operations.md#where-the-numbers-come-from",
    "web_allows": "web.md#code-and-files-that-the-browser-may-name",
    "origin": "web-agents.md#runs-from-the-browser",
    "adaptive_concurrency": "targets.md#rate-limits",
    "rate_limit_patience": "targets.md#rate-limits",
    "metric_timeout": "extending.md#metrics",
    "cases": "cases.md#which-files-are-case-files",
    "strict_places": "cases.md#how-systems-name-places",
    "path_prefix": "cases.md#how-systems-name-places",
    "notes": "audit-labels.md",
    "abstention": "judges.md#abstention-by-phrasing",
    "ontology": "ontology.md",
    "metrics": "configuration.md#which-metrics-are-scored",
    "report": "report.md",
    "report_json": "runs.md#reportjson",
}
"""The page about an option or a key."""
OTHER_VARIABLES = {
    "RAGEVAL_TARGET_TOKEN": "bearer token for HTTP and ASGI targets",
    "RAGEVAL_WEB_TOKEN": "token of [the web app](web.md#who-can-reach-it)",
    "OPENAI_API_KEY": "key for `openai:` targets and [judges](model-judges.md#keys)",
    "ANTHROPIC_API_KEY": "key for [judges](model-judges.md#keys)",
    "AZURE_OPENAI_API_KEY": "key for [judges](model-judges.md#keys)",
    "RAGEVAL_JUDGE_TOKEN": "key for [judges](model-judges.md#keys) on other servers",
}
"""Variables that hold a key."""
FILES_OF_RUN = {"results": "results.jsonl", "metrics": "metrics.json", "config": "config.json"}
"""The files of a run whose fields are listed, by their table in `fields.toml`."""
EMPTY_UNLESS_SET = ("gates", "judge_options", "versions")
"""Tables whose parts have no value unless set."""

_COLUMNS = re.compile(r"\S {2,}\S|^ ", re.MULTILINE)
"""Text that is aligned: columns, or lines that go on further right."""


def options_page() -> str:
    """Return the page of options, keys and variables."""
    lines = [
        "# Options and keys",
        "",
        "This page lists every option of pytest, every key of the table `[tool.rageval]` and every environment",
        "variable. [Configuration](configuration.md) shows how to use them. An option takes precedence over the",
        "environment, and the environment over the table.",
        "",
        "## Options of pytest",
        "",
        "| option | value | meaning |",
        "| --- | --- | --- |",
        *(_option_row(option) for option in OPTIONS),
        "",
        "## Keys of the table",
        "",
        "| key | default | meaning |",
        "| --- | --- | --- |",
        *(_key_row(name, meaning) for name, meaning in meanings_of_keys().items()),
        f"| `metrics` | – | {_cell('`enabled`, and options of metrics.', 'metrics')} |",
        "",
        "## Environment",
        "",
        "| variable | meaning |",
        "| --- | --- |",
        *(f"| `{name}` | the key `{setting}` |" for name, setting in ENVIRONMENT.items()),
        *(f"| `{name}` | {meaning} |" for name, meaning in OTHER_VARIABLES.items()),
        "",
    ]
    return "\n".join(lines)


def _option_row(option: Option) -> str:
    value = ", ".join(f"`{choice}`" for choice in option.choices) or option.metavar or ""
    return f"| `--rageval-{option.name}` | {value} | {_cell(option.help, option.field)} |"


def meanings_of_keys() -> dict[str, str]:
    """Return what each key of the table means: the text below its field, or the help of its option."""
    helps = {option.field: option.help for option in OPTIONS}
    written = dict(_documented_fields())
    meanings = {}
    for name in Settings.keys_of_table():
        if name not in written and name not in helps:
            raise ValueError(f"Settings.{name} has no docstring; write what it means below the field")
        meanings[name] = written.get(name) or helps[name]
    return meanings


def _documented_fields() -> Iterator[tuple[str, str]]:
    """Yield the fields of the settings with the docstring below each."""
    [settings] = ast.parse(inspect.getsource(Settings)).body
    assert isinstance(settings, ast.ClassDef)
    for field, below in zip(settings.body, settings.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            yield field.target.id, str(below.value.value)


def _key_row(name: str, meaning: str) -> str:
    default = json.loads(Settings().model_dump_json(include={name}))[name]
    if name in EMPTY_UNLESS_SET:
        default = {}
    shown = "–" if default is None else f"`{json.dumps(default)}`"
    without_default = re.sub(r" \((?:default: [^)]*|repeatable)\)", "", meaning)
    return f"| `{name}` | {shown} | {_cell(without_default + _limits(name), name)} |"


def _limits(name: str) -> str:
    """Return the least and the largest value of a key in words; nothing if it has none."""
    schema = Settings.model_json_schema()["properties"][name]
    for kind in schema.get("anyOf", [schema]):
        if "minimum" in kind and "maximum" in kind:
            return f" {kind['minimum']} to {kind['maximum']}."
    return ""


def _cell(meaning: str, name: str) -> str:
    """Return a text as a cell of a table, with a link to the page about it."""
    text = " ".join(meaning.split()).replace("|", "\\|")
    if name not in SEE:
        return text
    page = SEE[name].partition(".md")[0]
    return f"{text} See [{page}]({SEE[name]})."


def fields_page() -> str:
    """Return the page of the fields of case files and of a run's files."""
    case = case_schema()
    files = fields_of_run_files()
    lines = [
        "# Fields of files",
        "",
        "This page lists every field of a case file and of the files of a run. [Cases](cases.md) and [runs](runs.md)",
        "show how they work together.",
        "",
        "## Case file",
        "",
        *_case_table(case),
        "### gold",
        "",
        *_case_table(case["properties"]["gold"]),
        "### Places",
        "",
        "The objects in `gold_supports`, `supports` and `irrelevant_supports`:",
        "",
        *_case_table(case["$defs"]["anchor"]),
    ]
    for name, file in FILES_OF_RUN.items():
        lines += [f"## {file}", "", "| field | content |", "| --- | --- |"]
        for names, meaning in files[name].items():
            lines.append(f"| {', '.join(f'`{one}`' for one in names.split(', '))} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def _case_table(schema: dict[str, Any]) -> Iterator[str]:
    yield "| field | type | meaning |"
    yield "| --- | --- | --- |"
    for name, value in schema["properties"].items():
        kinds = value.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        shown = ", ".join(kind for kind in kinds if kind != "null")
        yield f"| `{name}` | {shown} | {_cell(value['description'], '')} |"
    yield ""


def api_page() -> str:
    """Return the page of the public names and hooks."""
    lines = [
        "# Python interface",
        "",
        "This page lists the public names of `pytest_rageval` and its hooks. [Extend](extending.md) and",
        "[Use it from Python](python.md) show how to use them.",
        "",
    ]
    for name in sorted(set(pytest_rageval.__all__) - {"__version__"}, key=str.lower):
        lines += _name_lines(name, getattr(pytest_rageval, name))
    lines += ["## Hooks", ""]
    for name, hook in vars(hookspecs).items():
        if name.startswith("pytest_rageval_"):
            lines += [f"### {name}", "", f"`{name}({_parameters(hook)})`", "", *_docstring(hook), ""]
    return "\n".join(lines)


def _name_lines(name: str, value: Any) -> Iterator[str]:
    yield f"## {name}"
    yield ""
    if not inspect.isclass(value):
        yield f"`{name}({_parameters(value)})`"
        yield ""
    yield from _docstring(value)
    yield ""
    if inspect.isclass(value) and is_dataclass(value):
        yield "| field | type |"
        yield "| --- | --- |"
        for field in fields(value):
            kind = str(field.type).replace("|", "\\|")
            yield f"| `{field.name}` | `{kind}` |"
        yield ""
    if inspect.isclass(value):
        yield from _members(value)


def _parameters(function: Callable[..., Any]) -> str:
    """Return the names of the parameters; defaults are left out, since some are objects without a syntax."""
    names: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        is_by_name = parameter.kind is parameter.KEYWORD_ONLY
        if is_by_name and not any(name.startswith("*") for name in names):
            names.append("*")
        if parameter.kind is parameter.VAR_POSITIONAL:
            names.append(f"*{parameter.name}")
        elif parameter.kind is parameter.VAR_KEYWORD:
            names.append(f"**{parameter.name}")
        else:
            names.append(parameter.name)
    return ", ".join(names)


def _docstring(value: object) -> Iterator[str]:
    """Yield the paragraphs of a docstring; those with aligned columns as they stand."""
    for number, paragraph in enumerate((inspect.getdoc(value) or "").split("\n\n")):
        if number:
            yield ""
        if _COLUMNS.search(paragraph):
            yield from ("```text", paragraph, "```")
        else:
            yield paragraph


def _members(kind: type) -> Iterator[str]:
    """Yield the documented methods and properties of a class as a table."""
    described = {}
    for name, member in vars(kind).items():
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
            described[name] = (inspect.getdoc(member) or "").partition("\n\n")[0]
    if any(described.values()):
        yield from ("| member | meaning |", "| --- | --- |")
        yield from (f"| `{name}` | {_cell(text, '')} |" for name, text in described.items() if text)
        yield ""


PAGES = {
    "api.md": api_page,
    "assertion-types.md": assertion_types_page,
    "commands.md": commands_page,
    "fields.md": fields_page,
    "fixtures.md": fixtures_page,
    "options.md": options_page,
    "shipped-rubrics.md": rubrics_page,
}


def main() -> None:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
