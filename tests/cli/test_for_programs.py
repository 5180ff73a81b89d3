"""What programs and coding agents rely on: `--json` with `next`, `rageval schema`, and the texts for agents."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from project import SOME, Project, a_case, a_missed_case

from pytest_rageval.cli.main import rageval
from pytest_rageval.cli.verb_with_parts import VerbWithParts
from pytest_rageval.config.options import OPTIONS
from pytest_rageval.config.settings_sources import load_settings

DOCS = Path(__file__).parents[2] / "docs"
LLMS = (DOCS / "llms.txt").read_text(encoding="utf-8")
SKILL = (DOCS / "SKILL.md").read_text(encoding="utf-8")


def documented() -> list[str]:
    """The commands in llms.txt, in their order."""
    return re.findall(r"`(rageval [^`]+)`", LLMS)


def verb_of(command: str) -> tuple[click.Command, list[str]]:
    """The verb that a command line calls, and the words after it."""
    verb: click.Command = rageval
    words = shlex.split(command)[1:]
    while isinstance(verb, click.Group):
        inner = verb.get_command(click.Context(verb), words[0])
        if inner is None and isinstance(verb, VerbWithParts):
            break
        assert inner is not None, command
        verb, words = inner, words[1:]
    return verb, words


def leaves(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every verb that does something, by its words."""
    if not isinstance(command, click.Group) or isinstance(command, VerbWithParts):
        yield " ".join(words), command
    if not isinstance(command, click.Group):
        return
    for word in command.list_commands(click.Context(command)):
        inner = command.get_command(click.Context(command), word)
        assert inner is not None
        yield from leaves(inner, (*words, word))


def answer(project: Project, command: str) -> tuple[int, dict[str, Any]]:
    """Call a command with `--json`: its exit code, and the object on its last line or in all of its output."""
    words = shlex.split(command)[1:]
    result = project.rageval(*words, *(["--json"] if "--json" not in words else []))
    text = "\n".join(result.outlines)
    content = json.loads(text if text.startswith("{") else result.outlines[-1])
    assert [*content][-1] == "next" or "compare" in words, "`next` stands last"
    return int(result.ret), content


@pytest.mark.parametrize("first", ["rageval doctor", "rageval run", "rageval runs list"])
def test_the_documented_commands_and_next_lead_from_an_empty_folder_to_a_green_run(project: Project, first: str):
    for path in project.path.iterdir():
        path.unlink()
    verbs = {verb_of(command)[0] for command in documented()}
    command = next(listed for listed in documented() if listed.startswith(first))
    calls: list[str] = []
    while len(calls) < 8:
        code, content = answer(project, command)
        calls.append(command.removesuffix(" --json"))
        if "outcomes" in content:
            break
        command = content["next"][0]
        assert verb_of(command)[0] in verbs, f"llms.txt does not speak of {command}"
    assert calls[-3:] == ["rageval init --yes", "rageval doctor", "rageval run"]
    assert code == 0
    assert content["outcomes"]["passed"] > 0
    assert content["outcomes"]["failed"] == content["outcomes"]["error"] == 0


def test_after_a_failing_run_next_explains_its_case_and_every_command_of_next_runs_as_it_stands(project: Project):
    project.cases([*SOME, a_missed_case("it's missed")])
    code, content = answer(project, "rageval run --run-id one")
    assert code == 1
    assert content["next"][0].startswith("rageval explain one ")
    for command in content["next"]:
        verb, words = verb_of(command)
        verb.make_context("rageval", list(words))
    assert project.rageval(*shlex.split(content["next"][0])[1:]).ret == 0


COMMANDS = {
    "calibrate": ["calibrate", "labels.jsonl"],
    "cases audit": ["cases", "audit"],
    "cases stats": ["cases", "stats"],
    "cases validate": ["cases", "validate"],
    "compare": ["compare", "one", "two"],
    "doctor": ["doctor"],
    "explain": ["explain", "two", "boil"],
    "gate": ["gate", "two", "--gate", "run mrr >= 0.99"],
    "generate": ["generate", "notes"],
    "generate conversations": [
        "generate",
        "conversations",
        "--scenarios",
        "scenarios.jsonl",
        "--user",
        "openai:m@http://127.0.0.1:9/v1",
        "--dry-run",
    ],
    "history": ["history"],
    "init": ["init", "--yes"],
    "judge-cache stats": ["judge-cache", "stats"],
    "judge-check": ["judge-check"],
    "label": ["label", "evalcases/a.jsonl", "--agree"],
    "metrics": ["metrics"],
    "run": ["run", "--run-id", "three"],
    "runs list": ["runs", "list"],
    "runs show": ["runs", "show", "one"],
    "sweep": ["sweep", "--grid", "k=1,2"],
}
"""By verb a call of it, in a project with two runs."""


def test_every_verb_with_json_is_called_below():
    with_json = {name for name, verb in leaves(rageval) if any("--json" in parameter.opts for parameter in verb.params)}
    assert with_json == COMMANDS.keys() | {"export"}, "export writes a file"


def test_every_json_is_one_object_that_ends_with_commands_that_can_be_called(project: Project):
    project.cases(SOME)
    project.write("notes/water.md", "# Water\n\n## When does milk boil?\n\nMilk boils sooner.\n")
    label = {"question": "Is it?", "answer": "It is.", "contexts": ["It is."], "human_score": 5, "judge_score": 4}
    project.write("scenarios.jsonl", json.dumps({"scenario": "A customer asks for prices."}) + "\n")
    project.write("labels.jsonl", json.dumps(label | {"id": "one"}) + "\n")
    project.write("evalcases/a.labels.ann.jsonl", json.dumps(a_case("boil")) + "\n")
    project.rageval("run", "--run-id", "one", "--judge", "lexical")
    project.cases([*SOME[1:], a_missed_case("boil")])
    project.rageval("run", "--run-id", "two", "--ignore-invariants")
    for name, words in COMMANDS.items():
        _, content = answer(project, shlex.join(["rageval", *words]))
        assert isinstance(content["next"], list), name
        for command in content["next"]:
            verb, rest = verb_of(command)
            verb.make_context("rageval", list(rest))


def test_with_json_wrong_settings_are_said_to_the_program_too(project: Project):
    project.configure('target = "bot:answer"\nkk = 3')
    code, content = answer(project, "rageval runs list")
    assert code == content["exit_code"] == 2
    assert "kk is not a known key" in content["problems"][0]
    assert content["next"] == ["rageval doctor"]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    from project import rageval as call

    return json.loads(call(tmp_path_factory.mktemp("empty"), "schema").stdout)


def test_the_schema_holds_every_command_with_its_options_and_exit_codes(document: dict[str, Any]):
    assert document["commands"].keys() == {name for name, _ in leaves(rageval)}
    for name, verb in leaves(rageval):
        described = document["commands"][name]
        written = {tuple(option["names"]) for option in described["options"]}
        assert written == {(*p.opts, *p.secondary_opts) for p in verb.params if isinstance(p, click.Option)}
        assert "0" in described["exit_codes"]
    assert document["commands"]["run"]["exit_codes"]["3"] == "the run's files could not be written"


def test_the_help_of_a_command_shows_the_exit_codes_of_the_schema(document: dict[str, Any], project: Project):
    lines = project.rageval("cases", "audit", "--help").outlines
    for code, meaning in document["commands"]["cases audit"]["exit_codes"].items():
        assert f"    {code}  {meaning}" in lines


def test_the_schema_of_settings_takes_what_the_table_takes_and_names_the_options_of_pytest(document: dict[str, Any]):
    assert document["pytest_options"].keys() == {f"--rageval-{option.name}" for option in OPTIONS}
    keys = document["settings"]["properties"]
    assert "run_id" not in keys
    assert {"target", "k", "metrics", "gates", "params"} <= keys.keys()
    assert document["settings"]["additionalProperties"] is False


def test_a_record_of_a_run_has_the_keys_of_the_schema_and_their_kinds(document: dict[str, Any], project: Project):
    project.cases([*SOME, a_missed_case("missed")])
    project.rageval("run")
    schema = document["result"]
    for record in project.records().values():
        written = record.keys() - {"checksum"}
        assert {*schema["required"]} <= written <= schema["properties"].keys()
        for name in written:
            assert is_of_kind(record[name], schema["properties"][name]), name


def is_of_kind(value: Any, schema: dict[str, Any]) -> bool:
    """Is a value of one of the JSON types that a schema names?"""
    types = {"string": str, "object": dict, "array": list, "boolean": bool, "integer": int, "null": type(None)}
    kinds = [each["type"] for each in schema.get("anyOf", [schema]) if "type" in each]
    return not kinds or "enum" in schema or isinstance(value, tuple(types[kind] for kind in kinds))


def test_the_grammar_of_gates_reads_its_own_examples(document: dict[str, Any], tmp_path: Path):
    grammar = document["gates"]
    for example in grammar["examples"]:
        assert re.fullmatch(grammar["pattern"], example)
    for example in grammar["regression"]["defaults"]:
        assert re.fullmatch(grammar["regression"]["pattern"], example)
    load_settings(tmp_path, {"gate": grammar["examples"], "tolerated": grammar["regression"]["defaults"]}, {})


def test_every_command_in_the_texts_for_agents_exists_with_its_options():
    commands = [
        *documented(),
        *re.findall(r"^(rageval [^#\n]+)", SKILL, re.MULTILINE),
        *re.findall(r"`(rageval [^`]+)`", SKILL),
    ]
    assert len(commands) > 15
    for command in commands:
        verb, words = verb_of(command)
        options = {name for parameter in verb.params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, command


def test_the_skill_has_a_name_and_a_description_and_is_printed_as_it_stands(project: Project):
    head = re.match(r"---\nname: [a-z-]+\ndescription: ([^\n]{40,1000})\n---\n", SKILL)
    assert head is not None
    assert ": " not in head[1], "YAML takes it for a key"
    assert "\n".join(project.rageval("schema", "--skill").outlines) + "\n" == SKILL
