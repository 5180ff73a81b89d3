"""Words and sentences: what is the same, and where they end."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_rageval.text import printable
from pytest_rageval.words import (
    as_label,
    content_tokens,
    fold,
    index_terms,
    korquad_characters,
    normalise,
    sentences,
    squad_normalise,
    tokens,
)

ANY_TEXT = st.text(st.characters(), max_size=60)  # lone surrogates included


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("  The\tquick,  brown FOX! ", "quick brown fox"),
        ("“Don’t”", "dont"),
        ("«Été»…", "été"),
        ("Ｆｕｌｌ－ｗｉｄｔｈ　１２３", "full width 123"),
        ("off-by-one", "off by one"),
        ("well\u2011known — state-of-the-art-", "well known state of art"),
        ("「東京」、です。", "東京です"),
        ("서울·부산", "서울 부산"),
        ("한글", "한글"),
        ("zero\u200bwidth", "zerowidth"),
        ("1990–1995", "1990-1995"),
        ("हिन्दी।", "हिन्दी"),
    ],
)
def test_what_differs_in_typing_only_is_normalised_away(written, normal):
    assert normalise(written) == normal


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("3.5 %", "3.5%"),
        (".5", "0.5"),
        ("1,000.", "1000"),
        ("-3", "-3"),
        ("−3", "-3"),
        ("B-3", "b 3"),
        ("5%-10%", "5% 10%"),
        ("(-3)", "-3"),
        ("v. 2", "v 2"),
    ],
)
def test_numbers_keep_their_point_and_sign(written, normal):
    assert normalise(written) == normal


@pytest.mark.parametrize(("written", "normal"), [("A", "a"), ("A.", "a"), ("The", "the"), ("%", "%"), ("。", "。")])
def test_nothing_is_normalised_to_nothing(written, normal):
    assert normalise(written) == normal


@settings(deadline=None)
@given(ANY_TEXT)
def test_normalised_text_has_single_spaces_and_is_empty_only_for_blank_text(text):
    normal = normalise(text)
    assert normal == " ".join(normal.split())
    assert bool(normal) == bool(text.strip()) or not text.isascii()


@settings(deadline=None)
@given(st.text(string.printable, max_size=40))
def test_the_short_way_for_ascii_agrees_with_the_long_one(text):
    # A trailing character outside ASCII forces the long way and is told apart by the space before it.
    for cut in (normalise, squad_normalise, fold, as_label):
        assert cut(f"{text} é").removesuffix("é").split() == (cut(f"{text} e").removesuffix("e")).split()
    for split in (tokens, index_terms, content_tokens):
        assert split(f"{text} é") == [*split(f"{text} e")[:-1], "é"]


def test_the_squad_normaliser_knows_ascii_punctuation_only():
    assert squad_normalise("The “State-of-the-art” 3.5!") == "“stateoftheart” 35"
    assert squad_normalise("The a .") == ""


def test_folding_keeps_punctuation_and_joins_lines():
    assert fold("  The\n VBO\u00a0data-set. ") == "the vbo data-set."
    assert fold("e\u0301") == fold("É") == "é"


def test_labels_are_trimmed_and_folded_but_keep_what_is_inside():
    assert as_label(" Has-Product ") == "has-product"
    assert as_label("ＬＡ　Ｂ") == "la b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the well-known word", ["well", "known", "word"]),
        ("東京タワーへ", list("東京タワーへ")),
        ("iPhoneは3.5", ["iphone", "は", "3.5"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("ភាសា", ["ភា", "សា"]),
        ("မြန်မာ", ["မြ", "န်", "မာ"]),
        ("ລາວ", list("ລາວ")),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("시장점유율은 3.5%", ["시장점유율", "3.5%"]),
        ("110mW, 3rd, -2.5km", ["110", "mw", "3", "rd", "-2.5", "km"]),
        ("B08XYZ v2", ["b08xyz", "v2"]),
        ("", []),
    ],
)
def test_tokens_are_words_or_characters_as_the_script_is_written(text, expected):
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("서울에서는", ["서울"]),
        ("서울입니다. 도쿄입니다.", ["서울", "도쿄"]),
        ("카메라는 작다", ["카메라", "작다"]),
        ("고양이는 고양이", ["고양", "고양"]),  # consistent, if not what a reader would say
        ("사람들은 사람들", ["사람", "사람"]),
        ("바나나가 바나나", ["바나나", "바나나"]),
        ("가을 마을 국가 도로", ["가을", "마을", "국가", "도로"]),
        ("값은 값", ["값", "값"]),
        ("LG전자는 iPhone은", ["lg전자", "iphone"]),
        ("2024년에 15개입니다", ["2024", "년", "15", "개"]),
        ("5만 5도", ["5", "만", "5", "도"]),
        ("이 제품", ["제품"]),
        ("가" * 7, ["가" * 3]),
        ("이", ["이"]),
    ],
)
def test_korean_words_are_compared_without_their_particles(text, expected):
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Frame_time: 3.5 ms", ["frame", "time", "3", "5", "ms"]),
        ("시장점유율", ["시장", "장점", "점유", "유율"]),
        ("값", ["값"]),
        ("東京LG전자", ["東京", "lg", "전자"]),
        ('"OR" NEAR(x*)', ["or", "near", "x"]),
        ("naïve Straße", ["naïve", "strasse"]),
        ("हिन्दी", ["हिन्दी"]),
        ("!!!", []),
    ],
)
def test_index_terms_are_words_and_pairs_of_characters(text, expected):
    assert index_terms(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is the market share of Laneige's serum?", ["market", "share", "laneige", "serum"]),
        ("It isn't 1,000.5 but -3", ["isnt", "1000.5", "-3"]),
        ("no, not never", ["no", "not", "never"]),
        ("라네즈의 시장점유율은 3.5%입니다", ["라네즈", "시장점유율", "3.5%"]),
        ("값은 얼마인가", ["값", "얼마인가"]),
        ("가을 마을 국가", ["가을", "마을", "국가"]),
        ("카메라는 바나나가", ["카메라", "바나나"]),
        ("5만 원이며 3.5%입니다", ["5", "만", "원이며", "3.5%"]),
        ("서울에서 부산까지", ["서울", "부산"]),
        ("東京タワーに行きました", ["東京", "タワ", "ワー", "行"]),
        ("to be or", ["to", "be", "or"]),
        ("すし", ["す", "し"]),
        ("", []),
    ],
)
def test_content_tokens_leave_out_what_only_holds_a_sentence_together(text, expected):
    assert content_tokens(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("It costs 3.5 dollars. Cheap.", ["It costs 3.5 dollars.", "Cheap."]),
        ("Dr. Smith met J. R. Doe in the U.S. Senate. Yes.", ["Dr. Smith met J. R. Doe in the U.S. Senate.", "Yes."]),
        ("Use both, e.g. Git. Yes.", ["Use both, e.g. Git.", "Yes."]),
        ("See Fig. 3 and No. 5 of p. 12. Then stop.", ["See Fig. 3 and No. 5 of p. 12.", "Then stop."]),
        ("It took 6.9 ms. They left.", ["It took 6.9 ms.", "They left."]),
        ("Add 5 g. The rest waits 3 sec. Then stop.", ["Add 5 g.", "The rest waits 3 sec.", "Then stop."]),
        ("Delays are in ms. They vary.", ["Delays are in ms.", "They vary."]),
        ("Ask Ms. Lee or Mt. Sinai. Yes.", ["Ask Ms. Lee or Mt. Sinai.", "Yes."]),
        ("Is it so? No. It is not.", ["Is it so?", "No.", "It is not."]),
        ("It is so.[1] It is [2]. And so.", ["It is so.[1]", "It is [2].", "And so."]),
        ("He said “Go.” She went.", ["He said “Go.”", "She went."]),
        ("“Really?” she said. Yes.", ["“Really?” she said.", "Yes."]),
        ("Well... maybe. So", ["Well... maybe.", "So"]),
        ("# Title\n\n- one\n- two. Three\n2) four", ["Title", "one", "two.", "Three", "four"]),
        ("今日は晴れ。明日は？雨！", ["今日は晴れ。", "明日は？", "雨！"]),
        ("「はい。」と言った。次。", ["「はい。」と言った。", "次。"]),
        ("갔다. 왔다.그리고 3.5%였다.", ["갔다.", "왔다.", "그리고 3.5%였다."]),
        ("ठीक है। अच्छा", ["ठीक है।", "अच्छा"]),
        ("...\n---\n", []),
    ],
)
def test_sentences_end_where_a_reader_sees_them_end(text, expected):
    assert sentences(text) == expected


@settings(deadline=None)
@given(ANY_TEXT)
def test_no_word_is_lost_between_sentences(text):
    letters = [letter for sentence in sentences(text) for letter in sentence if letter.isalpha()]
    assert letters == [letter for letter in text if letter.isalpha()]


@settings(deadline=None)
@given(ANY_TEXT)
def test_no_text_breaks_a_cut(text):
    for cut in (tokens, korquad_characters, index_terms, content_tokens, sentences):
        assert all(cut(text)), cut


# ── text as it is shown: nothing in it steers a terminal or breaks a file ────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 한글\n\tline", "plain 한글\n\tline"),
        ("\x1b[31mred\r\x07", "\\x1b[31mred\\x0d\\x07"),
        ("\ud800", "\\ud800"),
        ("\u202eevil\u2028", "\\u202eevil\\u2028"),
        ("\x85", "\\x85"),
    ],
)
def test_what_could_steer_a_terminal_is_escaped(text, shown):
    assert printable(text) == shown


@settings(deadline=None)
@given(ANY_TEXT)
def test_printable_text_can_be_encoded(text):
    assert "\x1b" not in printable(text).encode("utf-8").decode("utf-8")
