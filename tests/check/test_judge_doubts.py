"""Doubts about a judge: which of them the check of the judge settles, whatever the judge is called."""

from __future__ import annotations

from pytest_rageval.runs.judge_notes import doubts_about


def test_a_judge_named_like_the_check_is_not_sent_to_it_for_another_doubt():
    checked = {"unchecked": [], "rubrics": {}, "checked": "2026-11-28T10:00:00+00:00"}
    doubts = list(doubts_about({"model": "judge-check-mini", "pinned": False}, checked))
    assert [doubt.is_unchecked for doubt in doubts] == [False]
    assert "not pinned" in doubts[0].text


def test_a_judge_that_was_never_checked_is_sent_to_the_check():
    (doubt,) = doubts_about({"model": "acme-2"}, None)
    assert doubt.is_unchecked
