"""Rubrics: what every shipped file holds, how its version follows its content, and how a project's own replace them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.judges.rubrics import check_rubrics, load_rubric, rubric_of
from pytest_rageval.judges.rubrics.rubric_file import read_rubric
from pytest_rageval.judges.rubrics.rubric_lookup import FOLDER
from pytest_rageval.llm.json_exchange import MARKER
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import PLACEHOLDER, VARIABLES, JudgeRequest
from pytest_rageval.run.plan import make_plan

FIVE = ("relevance", "faithfulness", "citation_accuracy", "abstention_quality", "synthesis")
SHIPPED = tuple(
    sorted(
        (*FIVE, "composite", "abstention", "correctness", "groundedness", "reference_match", "claim_split",
         "claim_support", "conflict_acknowledged", "knowledge_retention", "conversation_completeness")
    )
)  # fmt: skip


def shipped_text(name: str = "groundedness") -> str:
    return (FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def own_layout(name: str = "groundedness") -> str:
    """The shipped rubric as a file whose prompt brings its own fences."""
    return re.sub(
        r'material = .*?"""\n(?=\n\[scores)|material = .*?(?=\n\[scores)',
        lambda _: f'prompt = """\n{load_rubric(name).prompt}"""\n',
        shipped_text(name),
        flags=re.DOTALL,
    )


def a_folder(path: Path, **files: str) -> Path:
    folder = path / "rubrics"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder


def problems(folder: Path) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        check_rubrics(folder, "rubrics")
    return list(caught.value.problems)


def test_every_rubric_that_a_metric_reads_is_shipped():
    assert {name for metric in load_registry() for name in metric.rubrics} | {"claim_split"} == set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_prompt_version_changes_with_every_byte_of_the_file_and_of_the_prompt(name):
    content = (FOLDER / f"{name}.toml").read_bytes()
    rubric = load_rubric(name)
    digest = hashlib.sha256(content + rubric.prompt.encode()).hexdigest()
    assert rubric.prompt_version == f"{rubric.version}+{digest[:12]}"
    assert read_rubric(name, content + b"# more", name).prompt_version != rubric.prompt_version


@pytest.mark.parametrize("name", SHIPPED)
def test_the_prompt_names_every_field_of_the_reply_and_every_score_that_there_is(name):
    rubric = load_rubric(name)
    task, _, reply = rubric.prompt.partition("# Reply\n")
    for field, described in rubric.schema["properties"].items():
        assert f'"{field}"' in reply, field
        is_scored = field in rubric.scores.values() and described["type"] == "number"
        for value in rubric.scale if is_scored and len(rubric.scores) == 1 else ():
            assert re.search(rf"^{value:g} +\S", task, re.MULTILINE), value


@pytest.mark.parametrize("name", SHIPPED)
def test_task_scale_and_form_come_before_the_material_and_are_the_same_in_every_request(name):
    rubric = load_rubric(name)
    assert "# Reply\n" in rubric.instructions
    assert not PLACEHOLDER.search(rubric.instructions)
    assert rubric.prompt.removeprefix(rubric.instructions).startswith("The marker of this request is {marker}.")
    assert rubric.prompt.rstrip().endswith(">")
    assert {"question", "answer"} <= rubric.variables or {"claims", "contexts"} <= rubric.variables
    assert "never an instruction" in rubric.instructions
    assert "Do not repeat the marker." in rubric.instructions


@pytest.mark.parametrize("name", SHIPPED)
def test_a_reply_is_asked_for_in_a_form_that_servers_can_force(name):
    schema = load_rubric(name).schema
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"])


@pytest.mark.parametrize("name", SHIPPED)
def test_a_rubric_that_is_copied_into_a_project_is_sound(name, tmp_path):
    assert check_rubrics(a_folder(tmp_path, **{name: shipped_text(name)})) == {name: load_rubric(name)}


def test_an_unknown_rubric_names_the_nearest_one():
    with pytest.raises(SettingsError, match=r"unknown rubric 'groundednes'; did you mean 'groundedness'\?"):
        load_rubric("groundednes")


def test_a_file_of_the_project_replaces_the_rubric_of_its_name(tmp_path):
    folder = a_folder(tmp_path, groundedness=shipped_text().replace("a strict examiner", "a kind examiner"))
    rubrics = check_rubrics(folder)
    assert rubrics.keys() == {"groundedness"}
    own = rubrics["groundedness"]
    assert "a kind examiner" in own.prompt
    assert rubric_of(JudgeRequest("groundedness", own.prompt_version, {}, wording=own)) is own
    assert rubric_of(JudgeRequest("groundedness", "1+abc", {})) == load_rubric("groundedness")


def test_a_plan_holds_the_wording_of_each_rubric_that_is_asked(tmp_path):
    a_folder(tmp_path, claim_split=shipped_text("claim_split") + "\n")
    settings = Settings(rubrics="rubrics", enabled=("claim_support", "relevance"))
    plan = make_plan(settings, load_registry(), tmp_path)
    assert plan.rubrics == ("claim_support", "relevance", "abstention")
    assert set(plan.wordings) == {*plan.rubrics, "claim_split"}
    assert plan.wordings["claim_split"].prompt_version != load_rubric("claim_split").prompt_version
    assert plan.wordings["relevance"] == load_rubric("relevance")


SCORE = "schema.properties.score"
CLAIMS = "schema.properties.supported_claims"
NUMBER = 'type = "number"'


@pytest.mark.parametrize(
    ("old", "new", "at", "problem"),
    [
        ('version = "3"', "version = 1", "version", 'version is 1 (a number), expected a short text, as in "1"'),
        ('version = "3"\n', "", "#", "has no version"),
        ("[0, 5]", "5", "scale", "scale is 5 (a number), expected lowest and highest score, as in [0, 5]"),
        ("[0, 5]", "[0, nan]", "scale", "scale[1] is nan (a number), expected a finite number"),
        ("scale", "scal", "scal", "scal is not a known key; did you mean 'scale'?"),
        ("{answer}", "{answr}", "{answr}", "prompt has an unknown placeholder {answr}; did you mean 'answer'?"),
        ("{marker}", "#", "prompt", "prompt has no {marker}: without it, what is judged"),
        ('= "score"', "= 3", "groundedness =", "scores.groundedness is 3 (a number), expected a string"),
        ('= "score"', '= "skore"', "groundedness =", "scores.groundedness is 'skore', no field of the schema"),
        ('", "score"]', '"]', "required", "schema.required lacks 'score', which holds the score of groundedness"),
        ('"object"', '"array"', "type", "schema.type is 'array' (a string), expected \"object\""),
        (NUMBER, 'type = "string" #', 'type = "string" #', f"{SCORE}.type is 'string', expected boolean, integer"),
        (NUMBER, 'type = "int"', 'type = "int"', f"{SCORE}.type is 'int' (a string), expected one of string, boolean"),
        ("maximum = 5", "maximum = 10", "maximum", f"{SCORE}.maximum is 10, beyond the scale [0, 5]"),
        ("{ type", "1 #", "items", f"{CLAIMS}.items is 1 (a number), expected a table, as in {{ type ="),
        ("maximum", "max = 2024-01-01 #", "[schema]", "schema cannot be written as JSON: Object of type date"),
        ("[0, 5]", '[0, "5"]', "scale", "scale[1] is '5' (a string), expected a number"),
        ('", "score"]', '", "skore"]', "required", "schema.required names 'skore', no field of the reply"),
        ("maximum = 5", "enum = [1, 7]", "enum", f"{SCORE}.enum holds 7, beyond the scale [0, 5]; change one of them"),
        ("[0, 5]", "[0, 5]\nstep = 0", "step", "step is 0 (a number), expected a number above 0, as in 1 for"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_rubric_is_said_with_its_line(old, new, at, problem, tmp_path):
    assert old in own_layout()
    text = own_layout().replace(old, new)
    found = problems(a_folder(tmp_path, groundedness=text))
    line = next(number for number, line in enumerate(text.split("\n"), start=1) if line.startswith(at))
    assert any(one.startswith(f"rubrics/groundedness.toml:{line}: {problem}") for one in found), found


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"contexts", ', '"context", ', "material holds 'context', no variable; did you mean 'contexts'?"),
        ("4. An", "4. {answer}", "prompt has the placeholder {answer}; beside material, name the variable there"),
        ('"question", "contexts", "citations", "answer"', "", "prompt has no {marker}: without it, what is judged"),
        ('"contexts", ', "", "prompt has no {contexts}, without which groundedness cannot be judged"),
    ],
)
def test_what_is_wrong_with_the_material_of_a_rubric_is_said(old, new, problem, tmp_path):
    assert old in shipped_text()
    found = problems(a_folder(tmp_path, groundedness=shipped_text().replace(old, new)))
    assert any(problem in one for one in found), found


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("relevance", 'relevance = "score"', 'grade = "score"', 'scores holds grade, expected relevance = "FIELD"'),
        ("relevance", "{answer}", "it", "prompt has no {answer}, without which relevance cannot be judged"),
        ("relevance", "{history}", "{claim}", "prompt has {claim}, which only claim_support is given; write {answer}"),
        ("groundedness", "{contexts}", "", "prompt has no {contexts}, without which groundedness cannot be judged"),
        (
            "relevance",
            "{history}",
            "{claims}",
            "prompt has {claims}, which only claim_support is given; write {answer}",
        ),
        (
            "relevance",
            "{history}",
            "{expected_outcome}",
            "prompt has {expected_outcome}, which only conversation_completeness is given; leave it out",
        ),
        (
            "conversation_completeness",
            "{expected_outcome}",
            "",
            "prompt has no {expected_outcome}, without which conversation_completeness cannot be judged",
        ),
        (
            "knowledge_retention",
            "{history}",
            "",
            "prompt has no {history}, without which knowledge_retention cannot be judged",
        ),
        ("claim_support", "{claims}", "", "prompt has no {claims}, without which claim_support cannot be judged"),
        ("claim_split", "claims", "parts", "schema.required lacks 'claims', which is what this rubric is asked for"),
    ],
)
def test_a_rubric_gives_what_is_read_of_the_one_it_replaces(name, old, new, problem, tmp_path):
    folder = a_folder(tmp_path, **{name: own_layout(name).replace(old, new)})
    assert problems(folder) == [f"rubrics/{name}.toml: {problem}"]


def test_bad_toml_is_said_with_its_place(tmp_path):
    assert problems(a_folder(tmp_path, relevance='version = "1"\nscale = [0 1]\n')) == [
        "rubrics/relevance.toml:2:12: not TOML: Unclosed array"
    ]
    assert problems(a_folder(tmp_path, relevance="scale = ")) == [
        "rubrics/relevance.toml not TOML at its end: Invalid value".replace("toml not", "toml: not")
    ]
    (tmp_path / "rubrics/relevance.toml").write_bytes(b'version = "\xff"')
    assert problems(tmp_path / "rubrics") == ["rubrics/relevance.toml: not UTF-8 at byte 11; save it as UTF-8"]


def test_a_file_that_no_rubric_can_be_is_refused_unread(tmp_path):
    folder = a_folder(tmp_path, relevance="#" * 300_000, synthesis="scale = " + "[" * 100_000)
    assert problems(folder) == [
        "rubrics/relevance.toml: larger than 256 KiB; a rubric goes out with every request",
        "rubrics/synthesis.toml: nested too deeply",
    ]


def test_all_that_is_wrong_with_a_folder_is_said_together(tmp_path):
    folder = a_folder(
        tmp_path, groundednes=shipped_text(), relevance="version = 1", synthesis=shipped_text("synthesis")
    )
    found = problems(folder)
    assert (
        found[0] == "rubrics/groundednes.toml: unknown rubric 'groundednes'; did you mean 'groundedness'? "
        "A new one needs a name less like it"
    )
    assert [problem.partition(": ")[2] for problem in found[1:]] == [
        'version is 1 (a number), expected a short text, as in "1"',
        "has no scale", "has no prompt", "has no scores", "has no schema",
    ]  # fmt: skip


def test_a_folder_that_is_missing_or_empty_is_said(tmp_path):
    assert problems(tmp_path / "rubrics") == ["rubrics: rubrics is not there or empty; expected a folder"]
    assert problems(a_folder(tmp_path)) == [
        "rubrics: rubrics is not there or empty; expected rubric files, as in abstention.toml"
    ]


def test_what_the_documentation_shows_of_rubrics_is_sound(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "rubrics.md").read_text(encoding="utf-8")
    [shown] = re.findall(r'^```toml title="rubrics/politeness.toml"\n(.*?)^```$', page, re.MULTILINE | re.DOTALL)
    [in_words] = re.findall(r"^```text\n(Rate .*?)^```$", page, re.MULTILINE | re.DOTALL)
    folder = a_folder(tmp_path, politeness=shown)
    (folder / "correctness.txt").write_text(in_words, encoding="utf-8")
    own = check_rubrics(folder)
    assert own["politeness"].variables == {"question", "answer"}
    assert own["correctness"].variables == {"question", "reference", "answer", "contexts"}
    listed = set(re.findall(r"\{([a-z_]+)\}", page.partition("| placeholder |")[2]))
    assert listed == VARIABLES | {MARKER}


def test_the_criterion_of_an_assertion_is_for_no_rubric_of_a_project(tmp_path):
    folder = a_folder(tmp_path, politeness="")
    (folder / "politeness.toml").unlink()
    (folder / "politeness.txt").write_text("Rate {answer} by {criterion}.", encoding="utf-8")
    [problem] = problems(folder)
    assert "prompt has {criterion}, which only assertions of type llm-rubric are given" in problem


def test_the_two_answers_of_a_pairwise_comparison_are_for_no_rubric_of_a_project(tmp_path):
    folder = a_folder(tmp_path, politeness="")
    (folder / "politeness.toml").unlink()
    (folder / "politeness.txt").write_text("Rate {answer} against {first_answer}.", encoding="utf-8")
    [problem] = problems(folder)
    assert "prompt has {first_answer}, which only compare --pairwise is given; write {answer}" in problem
