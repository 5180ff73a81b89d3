"""An ontology in the configuration: L4 is scored and gated, and what is wrong with it stops the run."""

from __future__ import annotations

import shutil

import pytest
from project import Project, a_case, lines_with

from pytest_rageval.demo import __file__ as demo

FOLDER = demo.rpartition("/")[0] + "/knowledge"
BOT = """
def answer(question):
    wrong = "boiling" in question
    types = {"moru": "Brand", "korea": "Market", "pad": "Product"} | ({"onda": ["Brand", "Market"]} if wrong else {})
    inference = {"subject": "moru", "predicate": "hasProduct", "object": "onda" if wrong else "pad"}
    trace = {"inferences": [inference], "entity_types": types}
    return {"answer": "Water boils at 100 degrees at sea level.", "trace": trace}
"""
TOML = 'ontology = "ontology.toml"'
SHACL = 'ontology = ["ontology.ttl", "ontology.shacl.ttl"]'


@pytest.fixture
def shop(project: Project) -> Project:
    """A project whose bot infers something right or, asked about boiling, something wrong."""
    project.write("bot.py", BOT)
    for name in ("ontology.toml", "ontology.ttl", "ontology.shacl.ttl"):
        shutil.copy(f"{FOLDER}/{name}", project.path / name)
    project.cases([a_case("wrong", gold_supports=[]), a_case("right", "What is it?", gold_supports=[])])
    return project


def configured(shop: Project, table: str, more: str = "") -> Project:
    shop.configure(f'target = "bot:answer"\n{table}\n', more)
    return shop


@pytest.mark.parametrize("table", [TOML, SHACL])
def test_what_violates_the_ontology_fails_its_gates_in_either_form(shop, table):
    result = configured(shop, table).run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert shop.outcomes() == {"wrong": "failed", "right": "passed"}
    record = shop.records()["wrong"]
    assert [gate["tag"] for gate in record["verdict"]["failed_gates"]] == [
        "L4_constraint_violation", "L4_type_inconsistency",
    ]  # fmt: skip
    assert (record["scores"]["constraint_violation_rate"], record["scores"]["type_consistency_rate"]) == (1, 0.75)
    assert "self_reported" not in record["score_details"]["constraint_violation_rate"]


def test_without_an_ontology_nothing_of_l4_is_scored(shop):
    assert configured(shop, "").run().ret == 0
    assert "no ontology is configured" in shop.records()["wrong"]["skipped_metrics"]["constraint_violation_rate"]
    assert shop.config()["ontology"] is None


def test_a_change_within_the_ontology_is_a_change_of_the_configuration(shop):
    configured(shop, TOML).run("--rageval-run-id", "1")
    before = shop.config()
    with (shop.path / "ontology.toml").open("a", encoding="utf-8") as file:
        file.write("# more\n")
    shop.run("--rageval-run-id", "2")
    assert before["ontology"] != shop.config()["ontology"]
    assert before["config_hash"] != shop.config()["config_hash"]


def test_a_redacted_record_says_how_many_but_not_what(shop):
    configured(shop, TOML).run("--rageval-redact")
    details = shop.records()["wrong"]["score_details"]
    assert details["constraint_violation_rate"] == {"inferences": 1, "violating": 1}
    assert details["type_consistency_rate"] == {"entities": 4, "inconsistent": 1}


def test_all_that_is_wrong_with_an_ontology_stops_the_run_with_other_problems(shop):
    shop.write("ontology.toml", 'classes.A = { parents = ["B"] }\nproperties.p = { domain = "C" }\n')
    result = configured(shop, TOML + '\ngates.case = ["mrrr >= 1"]').run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    for said in (
        "ontology.toml: classes.A.parents is 'B', no class of it; known: A",
        "ontology.toml: properties.p.domain is 'C', no class of it; known: A",
        "unknown metric 'mrrr'; did you mean 'mrr'?",
    ):
        assert lines_with(result, said)
    assert not lines_with(result, "Traceback")


@pytest.mark.parametrize(
    ("table", "more", "said"),
    [
        ('ontology = "none.toml"', "", "ontology: none.toml cannot be read: No such file or directory; mend the path"),
        ("ontology = 3", "", "ontology is 3 (a number), expected a path or a list of paths"),
        ('ontology = ["a.ttl", 3]', "", "ontology[1] is 3 (a number), expected a string"),
        (TOML, '[tool.rageval.metrics]\nconstraint_violation_rate = { ontology = "ontology.toml" }',
         "metrics.constraint_violation_rate.ontology is not an option of this metric"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_said_in_one_line(shop, table, more, said):
    result = configured(shop, table, more).run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, said)
