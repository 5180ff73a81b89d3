"""What changed between two runs: metrics that follow from the dataset are no change of the settings."""

from __future__ import annotations

from pytest_rageval.runs.config_diff import config_changes

OF_CONVERSATIONS = ["conversation_pass_rate", "turn_decay@mrr", "turn_decay@token_f1"]


def a_config(dataset: str, *metrics: str) -> dict[str, object]:
    return {"k": 5, "dataset_hash": dataset, "dataset_version": f"content:{dataset}", "metrics": list(metrics)}


def test_metrics_of_conversations_go_with_the_conversations():
    changes = config_changes(a_config("a" * 40, "mrr", *OF_CONVERSATIONS), a_config("b" * 40, "mrr"))
    assert [change.name for change in changes] == ["dataset"]


def test_another_metric_is_named_without_them():
    changes = config_changes(a_config("a" * 40, "mrr", *OF_CONVERSATIONS), a_config("b" * 40, "token_f1"))
    assert changes[1] == ("metrics", ["mrr"], ["token_f1"])


def test_a_metric_that_is_switched_off_for_the_same_cases_is_a_change():
    changes = config_changes(a_config("a" * 40, "mrr", *OF_CONVERSATIONS), a_config("a" * 40, "mrr"))
    assert [change.name for change in changes] == ["metrics"]
