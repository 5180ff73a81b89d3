"""Rows of Hugging Face's HotpotQA, as objects and as pandas prints them into a table."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_rageval.cli.cases import cases as cases_command

PRINTED = {
    "supporting_facts": "{'title': array(['Tea', \"Earl's\"], dtype=object), 'sent_id': array([0, 1], dtype=int32)}",
    "context": "{'title': array(['Tea', 'Milk'], dtype=object), 'sentences': "
    "array([array(['Hot.', 'Wet.'], dtype=object),\n       array(['White.'], dtype=object)], dtype=object)}",
}
OBJECTS = {
    "supporting_facts": {"title": ["Tea", "Earl's"], "sent_id": [0, 1]},
    "context": {"title": ["Tea", "Milk"], "sentences": [["Hot.", "Wet."], ["White."]]},
}


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_hotpotqa_as_datasets_writes_it_has_titles_as_ids_and_sentences_as_contexts(tmp_path: Path, kind: str):
    asked = {"id": "5a", "question": "Which is hot?", "answer": "Tea"}
    source = tmp_path / f"set.{kind}"
    if kind == "json":
        source.write_text(json.dumps([asked | OBJECTS]), "utf-8")
    else:
        with source.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [*asked, *PRINTED])
            writer.writeheader()
            writer.writerow(asked | PRINTED)
    output = tmp_path / "cases.jsonl"
    ended = CliRunner().invoke(cases_command, ["convert", str(source), "-o", str(output)])
    assert ended.exit_code == 0, ended.exception
    case = json.loads(output.read_text("utf-8"))
    assert case["gold"]["chunk_ids"] == ["Tea", "Earl's"]
    assert case["contexts"] == ["Hot. Wet.", "White."]
    assert "expected_key_facts" not in case
