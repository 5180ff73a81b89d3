"""The judge by a cross-encoder: which label counts, in which windows, and what is said where files are missing."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from judge_server import CONTRADICTION_FIRST, ENTAILMENT_FIRST, HHEM_1, HHEM_2, MINICHECK, a_model
from model_judges import problem_of

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges import judge_from_spec
from pytest_rageval.judges.judge import BaseJudge, identity_of
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.model import Judgement, JudgeRequest

PASSAGES = ("Milk is white.", "Water boils at 100 degrees at sea level.")
KNOWN = (*PASSAGES, "Moon holds green cheese.")
KINDS = [
    pytest.param(CONTRADICTION_FIRST, {}, id="entailment in the middle"),
    pytest.param(ENTAILMENT_FIRST, {"place": "onnx/model.onnx"}, id="entailment first"),
    pytest.param(MINICHECK, {}, id="two labels without names"),
    pytest.param(HHEM_1, {}, id="one logit"),
    pytest.param(HHEM_2, {"per_token": True}, id="a prompt, and logits a token"),
]


def a_judge(folder: Path, config: dict[str, Any] | None = None, **how: Any) -> BaseJudge:
    judge = judge_from_spec(f"nli:{a_model(folder / 'small', KNOWN, config, **how).name}", root=folder)
    assert judge is not None
    return judge


def judged(judge: BaseJudge, answer: str, *passages: str, rubric: str = "groundedness") -> Judgement:
    contexts = [{"chunk_id": None, "text": text} for text in passages]
    name = "claim" if rubric == "claim_support" else "answer"
    variables = {"question": "Q?", name: answer, "contexts": contexts}
    return asyncio.run(judge.judge(JudgeRequest(rubric, load_rubric(rubric).prompt_version, variables)))


@pytest.mark.parametrize(("config", "how"), KINDS)
def test_the_passage_that_supports_a_claim_best_counts_whatever_the_kind_of_model(
    tmp_path: Path, config: dict[str, Any], how: dict[str, Any]
):
    judge = a_judge(tmp_path, config, **how)
    assert judged(judge, "Water boils at 100 degrees.", *PASSAGES).scores["groundedness"] > 4.9
    assert judged(judge, "Moon holds green cheese.", *PASSAGES).scores["groundedness"] < 0.5
    mixed = judged(judge, "Water boils at 100 degrees [1]. Moon holds green cheese.", *PASSAGES)
    assert mixed.scores["groundedness"] == pytest.approx(2.5, abs=0.2)
    assert mixed.supported_claims == ("Water boils at 100 degrees.",)
    assert mixed.unsupported_claims == ("Moon holds green cheese.",)
    assert mixed.reasoning.startswith("1 of 2 claims are supported; weakest, at 0.")


def test_a_claim_that_is_supported_names_its_passage(tmp_path: Path):
    mixed = judged(a_judge(tmp_path), "Water boils at 100 degrees [1]. Moon holds green cheese.", *PASSAGES)
    (evidence,) = mixed.extra["evidence"]
    assert evidence.pop("chance") > 0.9
    assert evidence == {"claim": "Water boils at 100 degrees.", "verdict": "supported", "passage": 2}


def test_faithfulness_is_a_share_and_claim_support_counts_claims(tmp_path: Path):
    judge = a_judge(tmp_path)
    answer = "Water boils at 100 degrees. Moon holds green cheese. Milk is white."
    assert judged(judge, answer, *PASSAGES, rubric="faithfulness").scores["faithfulness"] == pytest.approx(
        2 / 3, abs=0.05
    )
    assert judged(judge, answer, *PASSAGES, rubric="claim_support").scores == {"claim_support": 0.6667}


@pytest.mark.parametrize("at", [0, 100, 397])
def test_of_a_long_passage_each_part_is_looked_at(tmp_path: Path, at: int):
    judge = a_judge(tmp_path, most_tokens=32)
    words = ["milk"] * 400
    words[at : at + 3] = ["water", "boils", "100"]
    assert judged(judge, "Water boils 100.", " ".join(words)).scores["groundedness"] > 4.9
    assert judged(judge, "Water boils 100.", " ".join(["milk"] * 400)).scores["groundedness"] < 0.5


def test_all_claims_of_an_answer_are_judged_in_as_many_batches_as_it_takes(tmp_path: Path):
    many = judged(a_judge(tmp_path), "\n".join(["Milk is white."] * 1499 + ["Moon holds green cheese."]), *PASSAGES)
    assert (len(many.supported_claims), many.unsupported_claims) == (1499, ("Moon holds green cheese.",))
    assert many.flags == ()


@pytest.mark.parametrize("at", [0, 20, 40])
def test_a_claim_longer_than_the_window_is_judged_in_parts_of_which_the_worst_counts(tmp_path: Path, at: int):
    judge = a_judge(tmp_path, most_tokens=48)
    words = ["milk"] * 60
    assert judged(judge, " ".join(words), "Milk is white.").scores["groundedness"] > 4.9
    words[at : at + 20] = ["moon"] * 20
    assert judged(judge, " ".join(words), "Milk is white.").scores["groundedness"] < 0.5


def test_what_does_not_fit_the_window_is_not_supported(tmp_path: Path):
    judge = a_judge(tmp_path, {**HHEM_2, "prompt": f"{'milk ' * 60}{{text1}} hypothesis {{text2}}"}, per_token=True)
    assert judged(judge, "Milk is white.", "Milk is white.").scores["groundedness"] == 0


def test_without_passages_nothing_is_supported_and_without_claims_there_is_no_score(tmp_path: Path):
    judge = a_judge(tmp_path)
    assert judged(judge, "Water boils.").scores == {"groundedness": 0.0}
    assert judged(judge, "I do not know.", *PASSAGES).scores == {}
    assert judged(judge, "Yes.", *PASSAGES).scores == {}


def test_it_is_known_by_the_content_of_its_files_wherever_they_lie(tmp_path: Path):
    judge = a_judge(tmp_path)
    shutil.copytree(tmp_path / "small", tmp_path / "copy")
    copy, other = judge_from_spec(f"nli:{tmp_path / 'copy'}"), a_judge(tmp_path / "other", MINICHECK)
    assert copy is not None
    assert identity_of(judge) == identity_of(copy) != identity_of(other)
    assert judge.model.startswith("nli/2:small@")


def test_what_it_needs_is_loaded_at_the_first_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = a_model(tmp_path / "small", KNOWN)
    for name in ("onnxruntime", "tokenizers", "huggingface_hub"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    judge = judge_from_spec(f"nli:{folder}")
    assert judge is not None
    assert not {"onnxruntime", "tokenizers", "huggingface_hub"} & sys.modules.keys()


def test_a_model_that_cannot_be_loaded_is_an_error_of_the_case_in_one_line(tmp_path: Path):
    folder = a_model(tmp_path / "small", KNOWN)
    (folder / "model.onnx").write_bytes(b"no model")
    judge = judge_from_spec(f"nli:{folder}")
    assert judge is not None
    with pytest.raises(JudgeError, match="cannot be loaded: ") as caught:
        judged(judge, "Water boils.", *PASSAGES)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("model.onnx", "there is no model.onnx or onnx/model.onnx in it; make one, as in `optimum-cli export onnx"),
        ("config.json", "there is no config.json beside its model.onnx"),
        ("tokenizer.json", "there is no tokenizer.json beside its model.onnx"),
    ],
)
def test_a_folder_without_one_of_its_files_says_which(tmp_path: Path, file: str, said: str):
    (a_model(tmp_path / "small", KNOWN) / file).unlink()
    assert problem_of("nli:small", root=tmp_path).startswith(f"judge 'nli:small': {said}")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}},
            "cannot be told from id2label (LABEL_0, LABEL_1",
        ),
        ({"id2label": {"0": "no", "1": "perhaps"}}, "cannot be told from id2label (no, perhaps)"),
        ({}, "cannot be told from id2label (none)"),
        ({"model_type": "HHEMv2Model", "prompt": "Is it so?"}, "prompt of its config.json has no {text1} and {text2}"),
    ],
)
def test_labels_of_which_none_means_support_are_said_before_anything_runs(tmp_path: Path, config: Any, said: str):
    (a_model(tmp_path / "small", KNOWN) / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert said in problem_of("nli:small", root=tmp_path)


@pytest.mark.parametrize("written", ["./nowhere", "nowhere", "a/b/c", ""])
def test_what_is_neither_folder_nor_repository_is_said(tmp_path: Path, written: str):
    assert "is no folder, and no OWNER/NAME of the Hugging Face hub" in problem_of(f"nli:{written}", root=tmp_path)


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pytest_rageval.judges.nli_judge.PACKAGES", ("onnxruntime", "no_such_package"))
    assert problem_of("nli:x") == "judge 'nli:x': no_such_package is not installed; pip install 'pytest-rageval[nli]'"


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub, which is not to be asked."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def test_a_model_that_was_downloaded_before_serves_offline(hub_cache: Path):
    repository = hub_cache / "models--ours--small"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc123", encoding="utf-8")
    a_model(repository / "snapshots" / "abc123", KNOWN, MINICHECK, place="onnx/model.onnx")
    judge = judge_from_spec("nli:ours/small")
    assert judge is not None
    assert judge.model.startswith("nli/2:small@")
    assert judged(judge, "Milk is white.", *PASSAGES).scores["groundedness"] > 4.9


def test_a_model_that_was_not_is_one_line(hub_cache: Path):
    assert problem_of("nli:ours/small").startswith(
        "judge 'nli:ours/small': ours/small is no folder, and cannot be had from the hub: LocalEntryNotFoundError: "
    )
