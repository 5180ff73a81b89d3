"""Whatever an answer, a gold and a question hold, the default answer gate has a verdict."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_rageval.language.gold_search import best_fit

EAST_ASIAN = "できません返品だめです不可以行有没能会네아니요안됩니다수없12ab %.,。、？!"
LATIN = "notyeskinÄé 0123.,;:-%$€<>()_=`'\"\\/\n"
TABLES = ("できません", "禁止", "안 됩니다", "不行", "いいえ", "はい", "네", "Ja", "no", "not", "only", "free", "5 %")
TEXTS = st.one_of(
    st.text(max_size=30),
    st.text(alphabet=EAST_ASIAN, max_size=12),
    st.text(alphabet=LATIN, max_size=30),
    st.lists(st.sampled_from(TABLES), max_size=4).map(" ".join),
    st.lists(st.sampled_from(TABLES), max_size=4).map("".join),
)
POLAR = st.sampled_from(("yes", "No", "Ja", "non", "네", "아니요", "はい", "いいえ", "不可以", "可以", "没有"))


@settings(max_examples=150, deadline=None)
@given(answer=TEXTS, gold=TEXTS | POLAR, question=TEXTS)
def test_texts_of_any_script_have_a_verdict(answer: str, gold: str, question: str):
    assert 0 <= best_fit(answer, [gold], question).share <= 1


@pytest.mark.parametrize(
    ("question", "gold", "answer", "passes"),
    [
        ("返品できますか？", "いいえ", "できません。", True),
        ("返品できますか？", "はい", "できません。", False),
        ("返品できますか？", "はい", "できます。", True),
        ("와이파이를 쓸 수 있나요?", "아니요", "됩니다.", False),
        ("可以带宠物吗？", "不可以", "禁止。", True),
        ("Is it free?", "Yes", "free", True),
    ],
)
def test_an_answer_may_be_the_bare_word_of_the_question_or_its_opposite(question, gold, answer, passes):
    assert (best_fit(answer, [gold], question).share >= 0.5) is passes
