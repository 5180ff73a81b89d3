"""Reference pages of what has names: rubrics, types of assertions, fixtures and marks, and the verbs at a glance."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_rageval.assertions.assertion_type import AssertionType
from pytest_rageval.assertions.registry import TYPES
from pytest_rageval.cli.main import VERBS
from pytest_rageval.judges.rubrics import load_rubric, rubric_names
from pytest_rageval.judges.rubrics.rubric_lookup import FOLDER
from pytest_rageval.plugin import fixtures
from pytest_rageval.plugin.hooks import MARKER

SKIPPED_IF = {
    "abstention": "the system reports `abstained`, or nothing else is to be judged",
    "abstention_quality": "never",
    "citation_accuracy": "there are no passages, or the system abstained",
    "claim_split": "the system abstained",
    "claim_support": "there are no passages, or the system abstained",
    "composite": "there are no passages; of an abstention, only `abstention_quality` is asked",
    "conflict_acknowledged": "the case's `recency_conflict_rule` is not `acknowledge_both`, or the system abstained",
    "conversation_completeness": "the case is not the last turn, or has no `expected_outcome`",
    "correctness": "the system abstained from an unanswerable case",
    "faithfulness": "there are no passages, or the system abstained",
    "groundedness": "there are no passages, or the system abstained",
    "knowledge_retention": "the case is not the last turn, or no question precedes it",
    "reference_match": "the case has no gold answer, or the system abstained",
    "relevance": "the system abstained",
    "synthesis": "the passages come from fewer than two documents, or the system abstained",
}
"""When each shipped rubric is not asked: the rules of `judges/requests.py` in words."""
ABOUT_VERB = {
    "init": "start.md#2-name-your-system",
    "doctor": "configuration.md#is-everything-ready",
    "demo": "demo.md",
    "schema": "agents.md",
    "completion": "run.md#completion",
    "run": "run.md#without-pytest",
    "comment": "ci.md",
    "compare": "compare.md",
    "explain": "runs.md#one-case-in-full",
    "history": "history.md",
    "metrics": "metrics.md",
    "report": "report.md",
    "web": "web.md",
    "answers": "target-answers.md",
    "cases": "cases.md",
    "generate": "generate.md",
    "label": "label.md",
    "repl": "repl.md",
    "sweep": "tune.md",
    "calibrate": "calibrate.md",
    "judge": "rejudge.md",
    "judge-cache": "judges.md#the-cache",
    "judge-check": "judges.md#can-this-judge-be-trusted",
    "abstention": "redo.md",
    "export": "history.md#a-run-for-other-programs",
    "gate": "redo.md#other-gates",
    "merge": "runs.md#shards",
    "runs": "history.md#which-runs-are-kept",
    "score": "redo.md",
}
"""The page about a verb."""


def cell(text: str) -> str:
    """Return a text on one line, as a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def verbs_at_a_glance() -> Iterator[str]:
    """Yield a table of all verbs, each with the page about it."""
    yield "| verb | what it does | page |"
    yield "| --- | --- | --- |"
    for verbs in VERBS.values():
        for verb, purpose in verbs.items():
            link = ABOUT_VERB.get(verb)
            page = f"[{link.partition('.md')[0]}]({link})" if link else ""
            yield f"| `{verb}` | {cell(purpose)} | {page} |"


def rubrics_page() -> str:
    """Return the page of the shipped rubrics, with their prompts."""
    lines = [
        "# Shipped rubrics",
        "",
        "This page shows the exact instructions that a model gets as a judge, and when each of them is used.",
        "[Judges](judges.md) explains their use, [Write your own rubric](rubrics.md) how to replace one.",
        "",
        "| rubric | scale | scores | skipped if |",
        "| --- | --- | --- | --- |",
    ]
    for name in rubric_names():
        rubric = load_rubric(name)
        scores = ", ".join(f"`{score}`" for score in rubric.scores) or "none"
        scale = " to ".join(f"{end:g}" for end in rubric.scale)
        lines.append(f"| [`{name}`](#{name}) | {scale} | {scores} | {SKIPPED_IF[name]} |")
    lines.append("")
    for name in rubric_names():
        lines += _rubric_lines(name)
    return "\n".join(lines)


def _rubric_lines(name: str) -> Iterator[str]:
    rubric = load_rubric(name)
    question = (FOLDER / f"{name}.toml").read_text(encoding="utf-8").partition("\n")[0]
    material = ", ".join(f"`{part}`" for part in rubric.material)
    yield f"## {name}"
    yield ""
    yield f"{question.removeprefix('# ')} Version {rubric.version}. It reads {material}."
    yield ""
    yield "```text"
    yield rubric.task.strip()
    yield "```"
    yield ""
    yield f"The reply has {cell(rubric.reply)}."
    yield ""


def assertion_types_page() -> str:
    """Return the page of the types of assertions."""
    lines = [
        "# Types of assertions",
        "",
        "This page lists every type of an assertion. [Assertions](assertions.md) shows how to write them.",
        "",
        "| type | value | default threshold | holds if |",
        "| --- | --- | --- | --- |",
        *(_type_row(name, kind) for name, kind in TYPES.items()),
        "",
    ]
    return "\n".join(lines)


def _type_row(name: str, kind: AssertionType) -> str:
    threshold = ""
    if kind.threshold is not None:
        default = "none" if kind.threshold.default is None else f"{kind.threshold.default:g}"
        threshold = f"{default} ({kind.threshold.about})"
    value = "–"
    if kind.value is not None:
        value = _value_in_words(kind.value.schema)
        if kind.value.is_optional:
            value += ", or none"
    return f"| `{name}` | {value} | {threshold} | {cell(inspect.getdoc(kind.check) or '')} |"


_KINDS = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "array": "list of texts",
    "object": "JSON Schema",
}


def _value_in_words(schema: Mapping[str, Any]) -> str:
    """Return what a value may be, from its JSON Schema."""
    if "anyOf" in schema:
        return " or ".join(_value_in_words(each) for each in schema["anyOf"])
    if schema.get("properties"):
        return f"object of {', '.join(f'`{name}`' for name in schema['properties'])}"
    kind = schema.get("type")
    if isinstance(kind, str):
        return _KINDS[kind]
    return "JSON Schema" if kind else "any JSON"


def fixtures_page() -> str:
    """Return the page of fixtures and marks."""
    lines = [
        "# Fixtures and marks",
        "",
        "This page lists the fixtures and the mark that the plugin gives to tests. [Extend](extending.md) shows them",
        "in use.",
        "",
        "| fixture | scope | meaning |",
        "| --- | --- | --- |",
        *_fixture_rows(),
        "",
        "## Mark",
        "",
        f"`pytest.mark.{MARKER.partition(':')[0]}`",
        "",
        f"{MARKER.partition(': ')[2].replace('-m ', '`-m ', 1)}`.",
        "",
    ]
    return "\n".join(lines)


def _fixture_rows() -> Iterator[str]:
    """Yield a row for each function with a decorator `fixture` in the module of the fixtures."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(fixtures)))
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or not node.decorator_list:
            continue
        written = ast.unparse(node.decorator_list[0])
        if written.startswith("pytest.fixture"):
            scope = "session" if "scope='session'" in written else "function"
            yield f"| `{node.name}` | {scope} | {cell(ast.get_docstring(node) or '')} |"
