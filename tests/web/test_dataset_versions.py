"""Datasets as plain case files: read back as they were, sealed, compared case by case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hostile import PAYLOADS
from project import FOUNDING

from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.cases.loading import load_file
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.model import NOWHERE, EvalCase, Gold
from pytest_rageval.web.versions.dataset_store import DatasetAbout, DatasetStore
from pytest_rageval.web.versions.value_changes import case_changes, dataset_changes
from pytest_rageval.web.versions.version_folder import NewerVersion, UnknownVersion

ABOUT = DatasetAbout(name="Products", description="of the shop", tags=("shop",), origin="one.csv")


@pytest.fixture
def store(tmp_path: Path) -> DatasetStore:
    return DatasetStore(tmp_path / "data")


def founding_cases() -> list[EvalCase]:
    return list(load_file(FOUNDING / "eval_set.jsonl", FOUNDING).cases)


def plain(cases: Iterable[EvalCase]) -> list[EvalCase]:
    return [replace(case, source=NOWHERE) for case in cases]


def test_a_version_reads_back_as_it_was_saved(store: DatasetStore):
    saved = store.save("products", ABOUT, founding_cases(), "first", 0)
    assert store.newest("products") == saved
    assert (saved.cases, saved.problem, saved.about) == (5, None, ABOUT)
    assert plain(store.cases("products", 1)) == plain(founding_cases())


@pytest.mark.parametrize(
    "record",
    [
        {"query": "x", "relevant_ids": [], "category": "negative"},
        {"id": "a", "question": "q", "gold": {"concepts": [], "relevance": {"a": 2, "b": 0}, "kg_edges": ["a -b-> c"]}},
        {"question": "q", "category": "general", "answerable": True},
        {"id": "q", "question": "q", "reference": "r", "contexts": ["c"], "history": [{"role": "user", "text": "t"}]},
        {"id": "q", "question": "q", "expected_answers": ["a", "b"], "metadata": {"a": {"b": None}}},
    ],
    ids=["ids", "layers", "general", "reference", "answers"],
)
def test_each_spelling_is_kept_without_loss(store: DatasetStore, record: dict[str, object]):
    case, _ = case_from_record(dict(record), NOWHERE)
    store.save("one", ABOUT, [case], "", 0)
    assert plain(store.cases("one", 1)) == [case]


@pytest.mark.parametrize("text", PAYLOADS)
def test_hostile_texts_are_texts_in_every_field(store: DatasetStore, text: str):
    case = EvalCase(text, text, category=text, tags=(text,), contexts=(text,), metadata={text: text})
    case = replace(case, gold=Gold(answers=(text,), key_facts=(text,)))
    store.save("x", DatasetAbout(name=text, description=text, tags=(text,), origin=text), [case], text, 0)
    assert plain(store.cases("x", 1)) == [case]
    version = store.newest("x")
    assert (version.about.name, version.note, version.problem) == (text, text, None)


def test_a_file_that_was_changed_is_named_and_never_run(store: DatasetStore):
    store.save("products", ABOUT, founding_cases(), "", 0)
    path = store.path("products", 1)
    assert store.run_path("products", 1) == path
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"main topic", b"other topic"))
    assert store.newest("products").problem == (
        f"{path} was changed after it was saved: restore it from git or a backup, or save it as a new version"
    )
    with pytest.raises(SettingsError, match="was changed after it was saved"):
        store.run_path("products", 1)
    assert "other topic" in store.cases("products", 1)[0].question


def test_what_a_version_says_of_itself_cannot_be_changed_unnoticed_either(store: DatasetStore):
    store.save("products", ABOUT, founding_cases(), "honest", 0)
    about = store.companion("products", 1, ".json")
    about.chmod(0o644)
    about.write_text(about.read_text("utf-8").replace("honest", "edited"), "utf-8")
    assert "was changed after it was saved" in str(store.newest("products").problem)
    about.write_text("{", "utf-8")
    assert "was changed after it was saved" in str(store.newest("products").problem)


def test_a_case_file_that_somebody_puts_there_is_a_version(store: DatasetStore):
    store.save("products", ABOUT, founding_cases(), "", 0)
    store.path("products", 4).write_bytes((FOUNDING / "golang.jsonl").read_bytes())
    version = store.newest("products")
    assert (version.number, version.cases) == (4, None)
    assert "has no seal" in str(version.problem)
    assert len(store.cases("products", 4)) == 1
    with pytest.raises(NewerVersion):
        store.save("products", ABOUT, founding_cases(), "", 1)


def test_a_case_file_that_cannot_be_read_says_why(store: DatasetStore):
    store.save("products", ABOUT, founding_cases(), "", 0)
    store.path("products", 2).write_text('{"id": "a"}\n', "utf-8")
    with pytest.raises(CaseError, match=r"v2.jsonl:1:1: case 'a': question is missing"):
        store.cases("products", 2)
    with pytest.raises(UnknownVersion):
        store.cases("products", 3)


def test_a_save_that_was_cut_off_leaves_no_version_and_is_made_good(store: DatasetStore):
    store.save("products", ABOUT, founding_cases(), "", 0)
    orphan = store.companion("products", 2, ".json")
    orphan.write_text("{}", "utf-8")
    assert store.numbers("products") == [1]
    assert store.save("products", ABOUT, founding_cases()[:2], "second", 1).number == 2
    assert store.newest("products").problem is None


def test_a_dataset_without_cases_is_refused(store: DatasetStore):
    with pytest.raises(CaseError, match="needs a case"):
        store.save("products", ABOUT, [], "", 0)


def test_the_difference_names_cases_that_came_went_and_changed_with_their_fields():
    before = founding_cases()
    changed = replace(before[0], question="What is the project about?", tags=("work",))
    added = EvalCase("test_006", "Is this new?")
    changes = dataset_changes(before, [changed, *before[2:], added])
    assert str(changes) == "1 case added, 1 case removed, 1 case changed"
    assert [case.id for case in changes.added] == ["test_006"]
    assert [case.id for case in changes.removed] == ["test_002"]
    ((case, fields),) = changes.changed
    assert case.id == "test_001"
    assert [(field.name, field.before, field.after) for field in fields] == [
        ("question", "What is the main topic of the project?", "What is the project about?"),
        ("tags", "work\ncode", "work"),
    ]
    assert str(dataset_changes(before, before)) == "no case differs"


def test_a_gold_that_is_known_to_be_empty_is_another_one_than_none():
    case = EvalCase("a", "q")
    changes = case_changes(case, replace(case, gold=Gold(concepts=())))
    assert [(change.name, change.before, change.after) for change in changes] == [("gold.concepts", "", "[]")]
