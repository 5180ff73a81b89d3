"""What is said wrongly in a context's own words: figures, names, units, opposites, negations; and what is not wrong."""

from __future__ import annotations

import pytest

from pytest_rageval.judges.lexical.evidence import CONTRADICTED, SUPPORTED, Support, read_claims, support
from pytest_rageval.judges.lexical.statements import read_passage

GAME = "The maximum score is 300, which is achieved by 12 strikes in a row."
TAX = "The fee is paid before March 2021 by the Maple Office and not by the Harbour Office. It is 40 dollars."


def seen(claim: str, *contexts: str) -> Support:
    (read,) = read_claims(claim)
    return support(read, [read_passage(context) for context in contexts])


CONTRADICTIONS = [
    ("figure", "The maximum score is 12, which is achieved by 12 strikes in a row.", GAME),
    ("figure", "The maximum score is 250, which is achieved by 12 strikes in a row.", GAME),
    ("figure", "The archive holds 1,300 sessions.", "The archive holds 1,200 sessions."),
    ("figure", "The archive holds nine sessions.", "The archive holds twelve sessions."),
    ("figure", "It opened in May 1999.", "It opened in May 1989."),
    ("name", "In 2008 the Board of Boston opened it.", "In 2008 the Board of Salem opened it. Boston slept."),
    ("opposite", "The fee is paid after March 2021 by the Maple Office.", TAX),
    ("opposite", "It opened to visitors in April.", "It opened to visitors in June."),
    ("opposite", "The trail runs for 20 miles along the coast.", "The trail runs for 20 km along the coast."),
    ("opposite", "Rents increased by 4 % last year.", "Rents decreased by 4 % last year."),
    ("negation", "The join keys are not unique.", "The join keys are unique."),
    ("negation", "The join keys are unique.", "The join keys aren't unique."),
    ("negation", "The join keys are unique.", "The join keys are n't unique ."),
    ("negation", "Guests can edit the shared notes.", "Guests can never edit the shared notes."),
    ("negation", "Die Schlüssel sind nicht eindeutig.", "Die Schlüssel sind eindeutig."),
    ("negation", "結合キーは一意ではない。", "結合キーは一意です。"),
]  # fmt: skip

KOREAN = [
    ("figure", "현미경은 60Hz로 동작합니다.", "이 현미경이 30Hz로 동작합니다."),
    ("figure", "카메라 다섯 대를 설치했습니다.", "카메라는 3대 설치되었습니다."),
    ("figure", "실험은 4월 5일에 시작했다.", "실험은 3월 5일에 시작했습니다."),
    ("opposite", "2023년 매출이 10% 감소했습니다.", "2023년에 매출이 10% 증가했다."),
    ("negation", "데이터는 서버에 저장되지 않습니다.", "데이터는 서버에 저장됩니다."),
    ("negation", "데이터는 서버에 저장됩니다.", "데이터는 서버에 저장되지 않습니다."),
    ("negation", "쥐는 소리를 안 듣습니다.", "쥐는 소리를 듣습니다."),
    ("negation", "조인 키는 고유한 이름이 아닙니다.", "조인 키는 고유한 이름입니다."),
]


@pytest.mark.parametrize(("kind", "claim", "context"), [*CONTRADICTIONS, *KOREAN])
def test_one_thing_changed_is_a_contradiction(kind, claim, context):
    found = seen(claim, context)
    assert found.opposed is not None
    assert found.opposed.kind == kind
    assert found.value <= CONTRADICTED


@pytest.mark.parametrize("text", [*(context for _, _, context in [*CONTRADICTIONS, *KOREAN])])
def test_nothing_contradicts_itself(text):
    assert all(support(claim, [read_passage(text)]).opposed is None for claim in read_claims(text))


SAID_OTHERWISE_BUT_RIGHT = [
    ("The trail is 20 kilometres long.", "The trail is 20 km long."),
    ("Das Archiv hat 1200 Bilder.", "Das Archiv hat 1.200 Bilder."),
    ("It opened in Jan 2020.", "It opened in January 2020."),
    ("Members are Ash, Dana, Cleo, Bo and Eve.", "Members are Ash, Bo, Cleo, Dana and Eve."),
    ("No, the scanner does not read encrypted images.", "Encrypted images aren't read by the scanner."),
    ("Avoid putting personal names in your space names.", "Do not put personal names in your space names."),
    ("It was rejected without an email address.", "It was rejected and an email address was not given."),
    ("Fees rise all year long.", "Fees rise not only in summer, but all year long."),
    ("You complete these steps now.", "If you do not complete these steps now, you complete them later."),
    ("Worker nodes run a later version.", "Can worker nodes not run a later version?"),
    ("The camera runs at 30 Hz.", "The camera runs at 30 Hz in the room, which is not heated and has no window."),
    ("It was released on June 7th 2010.", "It was shown on June 7, 2010 and released on June 24, 2010."),
    ("카메라 세 대를 설치했습니다.", "카메라는 3대 설치되었습니다."),
    ("참가자는 3만 명이다.", "참가자는 30000명이다."),
    ("데이터는 서버에 저장되지 않는다.", "데이터는 서버에 저장되지 않습니다."),
]


@pytest.mark.parametrize(("claim", "context"), SAID_OTHERWISE_BUT_RIGHT)
def test_another_wording_is_no_contradiction(claim, context):
    assert seen(claim, context).opposed is None


def test_a_value_that_stands_in_the_same_surroundings_elsewhere_is_right():
    claim = "The ferry to Salem leaves at 9 every day."
    assert seen(claim, "The ferry to Salem leaves at 7 every day.").opposed is not None
    both = "The ferry to Salem leaves at 7 every day.", "The ferry to Salem leaves at 9 every day."
    assert seen(claim, *both).opposed is None


def test_a_figure_alone_is_a_claim_only_where_nothing_else_is_said():
    assert [claim.text for claim in read_claims("Follow these:\n1.\nOpen the lid.")] == [
        "Follow these:",
        "Open the lid.",
    ]
    assert [claim.text for claim in read_claims("42")] == ["42"]


def test_korean_verbs_and_particles_do_not_hide_what_is_borne_out():
    assert seen("현미경은 30Hz로 동작합니다.", "이 현미경이 30Hz로 동작한다.").value >= SUPPORTED
    assert seen("매출이 증가했습니다.", "매출의 증가가 있었다.").value >= SUPPORTED
    assert seen("매출이 늘었습니다.", "오늘은 비가 왔다.").value == 0


@pytest.mark.parametrize("part", ["not ", "Anna 7 not ", "no, ", "Anna Berta ", "1.1", "'", "안 ", "7 월 ", "不", "x@"])
def test_an_endless_sentence_without_a_full_stop_is_read_all_the_same(part):
    text = (part * 20_000)[:20_000]
    for claim in read_claims(text):
        assert 0 <= support(claim, [read_passage(text), read_passage(f"7 {text}")]).value <= 1
