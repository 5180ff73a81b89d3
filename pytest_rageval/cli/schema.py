"""`rageval schema`: commands, settings, records and gates for programs, as one JSON document."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import click
from pydantic import TypeAdapter

from pytest_rageval.cases.schema import case_schema
from pytest_rageval.cli.metrics import describe
from pytest_rageval.cli.options import exit_codes_of
from pytest_rageval.cli.verb_with_parts import VerbWithParts
from pytest_rageval.config.options import OPTIONS
from pytest_rageval.config.settings import ENVIRONMENT, Settings
from pytest_rageval.gates.gate import CLOSED, FIELDS, GATE_FORM, GATE_PATTERN, HOLDS
from pytest_rageval.gates.regression import DEFAULT_REGRESSIONS, REGRESSION_FORM, REGRESSION_PATTERN
from pytest_rageval.gates.win_rate_gate import SUBJECTS, WIN_RATE_FORM, WIN_RATE_PATTERN
from pytest_rageval.io.json_text import json_text
from pytest_rageval.links import docs_page
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import CaseResult, EvalCase, Json
from pytest_rageval.model.case_fields import DESCRIPTIVE_NAMES
from pytest_rageval.run.plan import make_plan
from pytest_rageval.runs.records.line_form import SCHEMA
from pytest_rageval.runs.records.result_line import result_record

PARTS = ("commands", "pytest_options", "settings", "environment", "case", "result", "gates", "metrics")
PACKAGE = Path(__file__).parents[1]
SKILL = "SKILL.md"
_LINK = re.compile(r"\[([^\]]{1,200})\]\([^)]{1,200}\)")


@click.command()
@click.argument("part", required=False, type=click.Choice(PARTS))
@click.option("--skill", "is_skill", is_flag=True, help="Print the skill for coding agents, as Markdown, instead.")
@click.pass_context
def schema(context: click.Context, part: str | None, *, is_skill: bool) -> None:
    """Describe all of rageval for programs, or one PART of it: commands with options and exit codes, options of pytest,
    settings, environment, the line of a case file, the line of results.jsonl, the grammar of gates, metrics.

    Settings, case and result are JSON Schema. All of it is read from what does the work.
    """
    if is_skill:
        if part is not None:
            raise click.UsageError("--skill prints one text; leave PART out")
        click.echo(for_agents(SKILL), nl=False)
        return
    document = _document(context.find_root().command, (part,) if part is not None else PARTS)
    click.echo(json_text(document if part is None else document[part], 2, default=str))


def for_agents(name: str) -> str:
    """Read a text for coding agents: from the installed package, or from the repository's docs."""
    installed = PACKAGE / "agents" / name
    path = installed if installed.exists() else PACKAGE.parent / "docs" / name
    return path.read_text(encoding="utf-8")


def _document(root: click.Command, parts: tuple[str, ...]) -> dict[str, Any]:
    makers: dict[str, Callable[[], Any]] = {
        "commands": lambda: dict(_commands(root, "", click.Context(root))),
        "pytest_options": _pytest_options,
        "settings": settings_schema,
        "environment": lambda: dict(ENVIRONMENT),
        "case": case_schema,
        "result": result_schema,
        "gates": _gate_grammar,
        "metrics": lambda: {metric.name: describe(metric) for metric in load_registry()},
    }
    document = {"version": version("pytest-rageval")}
    for part in parts:
        document[part] = makers[part]()
    return document


def _pytest_options() -> dict[str, Any]:
    described = {}
    for option in OPTIONS:
        described[f"--rageval-{option.name}"] = {
            "help": option.help,
            "kind": option.kind,
            "value": option.metavar,
            "choices": list(option.choices),
        }
    return described


def _commands(command: click.Command, name: str, context: click.Context) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return all executable commands below this one by their words: `cases validate`."""
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            inner = command.get_command(context, word)
            if inner is not None:
                yield from _commands(inner, f"{name} {word}".strip(), context)
        if not isinstance(command, VerbWithParts):
            return
    described: dict[str, Any] = {
        "help": inspect.cleandoc(command.help or "").replace("\b\n", ""),
        "arguments": [],
        "options": [],
        "exit_codes": {str(code): meaning for code, meaning in exit_codes_of(command).items()},
    }
    for parameter in command.params:
        info = parameter.to_info_dict()
        if info["param_type_name"] == "argument":
            argument = {"name": info["name"], "required": info["required"], "many": info["nargs"] != 1}
            described["arguments"].append(argument | _type(info))
        else:
            names = [*info["opts"], *info["secondary_opts"]]
            option = {"names": names, "help": info["help"], "flag": info["is_flag"], "repeatable": info["multiple"]}
            described["options"].append(option | {"default": info["default"]} | _type(info))
    yield name, described


def _type(info: Mapping[str, Any]) -> dict[str, Any]:
    kind = info["type"]
    described = {"type": kind["name"]}
    for key in ("choices", "min", "max"):
        if kind.get(key) is not None:
            described[key] = kind[key]
    return described


def _gate_grammar() -> dict[str, Json]:
    fields: dict[str, Json] = dict.fromkeys(FIELDS, "any text")
    for name, values in CLOSED.items():
        if name in fields:
            fields[name] = list(values)
    return {
        "form": f"[run] {GATE_FORM}, or METRIC off",
        "pattern": GATE_PATTERN.pattern,
        "operators": list(HOLDS),
        "fields": fields,
        "examples": ["recall_any@5 >= 0.8 when category=multi_hop", "run recall_any@5 >= 0.85", "mrr off"],
        "regression": {
            "form": REGRESSION_FORM,
            "pattern": REGRESSION_PATTERN.pattern,
            "defaults": list(DEFAULT_REGRESSIONS),
        },
        "pairwise": {"form": WIN_RATE_FORM, "pattern": WIN_RATE_PATTERN.pattern, "subjects": list(SUBJECTS)},
    }


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the table. Dependencies between keys are checked by loading alone."""
    schema = Settings.model_json_schema()
    fields: dict[str, Any] = schema["properties"]
    keys = {name: fields[name] for name in Settings.keys_of_table()}
    api = {"url": {"type": "string"}, "mapping": fields["mapping"]}
    keys["target"] = {"anyOf": [fields["target"], {"type": "object", "properties": api, "additionalProperties": False}]}
    keys["metrics"] = {
        "type": "object",
        "properties": {"enabled": fields["enabled"]},
        "additionalProperties": fields["metric_options"]["additionalProperties"],
    }
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "[tool.rageval]"}
    untitled: dict[str, Any] = _untitled(schema | {"properties": keys} | about)
    return untitled | about


def _untitled(schema: Any) -> Any:
    """Drop titles that are made from names, and null, which TOML cannot write."""
    if isinstance(schema, list):
        return [_untitled(each) for each in schema if each != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    tidy = {}
    for key, inner in schema.items():
        # `title` and `default` can also be names of settings, whose schema is a table.
        is_made_title = key == "title" and isinstance(inner, str)
        is_null_default = key == "default" and inner is None
        if not is_made_title and not is_null_default:
            tidy[key] = _untitled(inner)
    alternatives = tidy.get("anyOf")
    if alternatives is None or len(alternatives) != 1:
        return tidy
    del tidy["anyOf"]
    return {**alternatives[0], **tidy}


_Table = dict[str, Json]
_KINDS: Mapping[str, Any] = {
    "case_key": str,
    "test_case_id": str,
    "content_hash": str,
    **dict.fromkeys(DESCRIPTIVE_NAMES, str | None),
    "reason": str | None,
    "question": str | None,
    "answer": str | None,
    "trial": int,
    "attempts": int,
    "answerable": bool,
    "tags": list[str],
    "outcome": Literal["passed", "failed", "error", "skipped", "xfailed"],
    "source": _Table,
    "cost": _Table,
    "judge": _Table | None,
    "abstention": _Table | None,
    "references": list[_Table],
    "retrieved_chunks": list[_Table],
    "latency": dict[str, float | None],
    "operations": dict[str, float],
    "scores": dict[str, float],
    "score_details": dict[str, _Table],
    "skipped_metrics": dict[str, str | None],
    "error": dict[str, str | int | None] | None,
}
"""The types of a result's values, as far as readers rely on them."""
_OF_TURNS: Mapping[str, Any] = {"conversation": str, "turn": int, "conversational": bool}
"""Those that only turns of a conversation have."""
_VERDICT: Json = {
    "type": "object",
    "required": ["passed", "gates_held", "failed_gates"],
    "properties": {
        "passed": {"type": "boolean"},
        "gates_held": {"type": "integer"},
        "failed_gates": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["metric", "threshold"],
                "properties": {
                    "metric": {"type": "string"},
                    "threshold": {"type": "string"},
                    "value": {"type": ["number", "null"]},
                    "tag": {"type": ["string", "null"]},
                },
            },
        },
        "by_rule": {"type": "string"},
        "confirmation": {
            "type": "object",
            "required": ["attempts", "failed"],
            "properties": {
                "attempts": {"type": "integer"},
                "failed": {"type": "integer"},
                "errors": {"type": "integer"},
                "first": {"type": "string"},
                "spared": {"type": "array", "items": {"type": "string"}},
            },
        },
    },
}
_OF_SOME_RESULTS: dict[str, Json] = {
    "confirms": {"type": "integer"},
    "records": {"type": "integer"},
    "pass_rule": {"type": ["string", "number"]},
    "rewrite": {
        "type": "object",
        "required": ["question", "answer", "retrieved_chunks", "scores", "metric_errors", "error"],
        "properties": {
            "question": {"type": ["string", "null"]},
            "answer": {"type": ["string", "null"]},
            "scores": {"type": "object", "additionalProperties": {"type": "number"}},
        },
    },
}
"""Keys of cases alone that were asked again or as their rewrites, or have a pass rule of their own."""


def result_schema() -> dict[str, Json]:
    """Return the JSON Schema (draft 2020-12) of a line of results.jsonl: every key, with the kind of its value."""
    plan = make_plan(Settings(), load_registry())
    written = result_record(CaseResult(EvalCase(id="", question=""), "error"), plan, "")
    kinds: dict[str, Json] = {name: TypeAdapter(kind).json_schema() for name, kind in _KINDS.items()}
    kinds["verdict"] = _VERDICT
    types: dict[str, dict[str, Json]] = {
        **{name: kinds.get(name, {}) for name in written},
        **{name: TypeAdapter(kind).json_schema() for name, kind in _OF_TURNS.items()},
        **_OF_SOME_RESULTS,
    }
    meanings = fields_of_run_files()["results"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Result of a case",
        "description": f"One line of results.jsonl, schema {SCHEMA}; what each key means: {docs_page('fields')}",
        "type": "object",
        "properties": {name: described | _meaning(name, meanings) for name, described in types.items()},
        "required": list(written),
    }


def fields_of_run_files() -> dict[str, dict[str, str]]:
    """Read the meanings of the fields of results.jsonl, metrics.json and config.json, as Markdown, by file.

    Fields that belong together share an entry; their names are separated by commas.
    """
    return tomllib.loads((PACKAGE / "runs" / "fields.toml").read_text(encoding="utf-8"))


def _meaning(name: str, meanings: Mapping[str, str]) -> dict[str, Json]:
    """Return the description of a field of a result for its JSON Schema; nothing if it has none."""
    for fields, meaning in meanings.items():
        if name in fields.split(", "):
            return {"description": _LINK.sub(r"\1", meaning)}
    return {}
