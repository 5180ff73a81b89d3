"""Words, sentences and quantities: what is the same, and where they end."""

from __future__ import annotations

import string
from itertools import combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_rageval.judges.lexical_judge import SMALL_WORDS, terms_in
from pytest_rageval.language.words import (
    as_label,
    content_tokens,
    fold,
    index_terms,
    korquad_characters,
    normalise,
    normalise_any,
    sentences,
    squad_normalise,
    tokens,
)
from pytest_rageval.metrics.answer import best_f1, equals_any, stated_facts
from pytest_rageval.text import printable

ANY_TEXT = st.text(st.characters(), max_size=60)  # lone surrogates included
PLAIN_TEXT = st.lists(
    st.sampled_from(
        [*"aAbzZ .,;:!?'\"()-\n\t\x01\x03_&[1", *"ßé東서 ", "the", "a", "One", "half", "e.g", ".NET", "up to ", "two-"]
    ),
    max_size=12,
).map("".join)
"""Words and marks, most of which take the short way, with a few that must not."""


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
@example("v2.0")
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
        ("2024년에 15개입니다", ["2024", "15", "개"]),
        ("5만 5도", ["50000", "5", "도"]),
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
        ("5만 원이며 3.5%입니다", ["₩50000", "3.5%"]),
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


SAME = [
    ("3.5 %", "3,5 %", "3.5%", "3,5 percent", "３．５％", "3.5 Prozent", "3.50 %", "٣٫٥٪"),
    ("1234", "1,234", "1 234", "1\u202f234", "1'234", "1’234", "1,234.0"),
    ("1234567.8", "1,234,567.8", "1.234.567,8", "1 234 567,8"),
    ("$5", "5 $", "USD 5", "5 USD", "US$5", "5 dollars", "$5.00"),
    ("$5 million", "5 million $", "USD 5 million", "5 million dollars"),
    ("€9.99", "9,99 €", "EUR 9.99", "9,99 euros"),
    ("-3", "−3", "(-3)", "“-3”", "-3."),
    ("-$5", "$-5", "−5 USD"),
    ("5", "(5)", "[5]", '"5"', "5.", "+5", "**5**"),
    ("5-10", "5–10", "5 - 10", "5 to 10", "5～10"),
    ("10 km", "10km", "１０ km", "10 km."),
    ("約10円", "約 10 円", "約１０円"),
    ("9:30", "09:30", "9：30"),
    ("9:30 pm", "9.30 pm", "9:30 PM"),
    ("1/2", "½", "1⁄2", "1 / 2"),
    ("2 1/2", "2½"),
    ("10^-3", "10⁻³"),
    ("10^2", "10²", "10**2"),
    ("m^2", "m²"),
    ("5x3", "5×3", "5 × 3", "5*3"),
    ("≥5", ">=5", "≥ 5", ">= 5"),
    ("0.5", ".5", "0,5"),
    ("25 °C", "25°C", "25 ℃"),
    ("C++", "c++.", "(C++)"),
    ("C#", "c#,"),
    (".NET", "“.NET”", ".net."),
    ("O(n)", "o(n)"),
]  # fmt: skip
OTHERS = (
    """
12|1/2|11/2|1:2|1.2|1-2|1+2|1x2|1^2|12%|12‰|>12|<12|≥12|≤12|±12|~12|-12|-12%|$12|€12|-$12|¥12|12+|1.234|1234|123.4|0x10
9:30|9.30|930|2024-05-01|2024-05-02|20240501|1.2.3|1.23|123|10.0.0.1|10.0.01|1e5|1e-5|15|3.1|3.10|10^2|102
C|C#|C++|A|A+|A-|NET|.NET|F#|F|x<5|x>5|x=5|m^2|m2|5′|5″|5'11|511|$12/month|$12 month|1, 2, 3
5 MW|5 mW|5 km|5 m|5 m/s|5 ms|5 km/h|a < b|a > b
""".strip()
    .replace("\n", "|")
    .split("|")
)


@pytest.mark.parametrize("written", SAME, ids=lambda written: written[0])
def test_a_quantity_is_the_same_however_it_is_written(written: tuple[str, ...]):
    first, *rest = written
    for other in rest:
        assert equals_any(other, [first]) == best_f1(other, [first]) == 1, other
        assert stated_facts(f"It is {other} in all", [first]) == [True], other
        assert terms_in(f"so {other} there") - SMALL_WORDS == terms_in(f"{first}") - SMALL_WORDS, other


def test_two_quantities_are_never_equal():
    for one, other in combinations(OTHERS, 2):
        assert equals_any(one, [other]) == 0, (one, other)
        assert best_f1(one, [other]) < 1, (one, other)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [("3,5 %", "35 %"), ("1/2", "12"), (">5", "<5"), ("-3 %", "3 %"), ("5 $", "5 €"), ("9:30", "9:03")],
)
def test_another_quantity_shares_nothing_with_the_gold_one(answer: str, gold: str):
    assert best_f1(answer, [gold]) == 0
    assert stated_facts(f"In all {answer} of them", [gold]) == [False]
    assert not terms_in(answer) & terms_in(gold)


FIGURES = st.from_regex(r"[1-9][0-9]{0,3}", fullmatch=True)
PARTS = st.tuples(
    st.sampled_from(["", "<", ">", "≤", "≥", "±", "≈"]),
    st.sampled_from(["", "-"]),
    st.sampled_from(["", "$", "€", "£", "¥", "₩"]),
    FIGURES,
    st.sampled_from(["", ".", ":", "/", "-", "^", "x", "+"]),
    FIGURES,
    st.sampled_from(["", "%", "‰", " km", " m", " m/s"]),
)


@settings(deadline=None)
@given(PARTS, PARTS)
def test_changing_a_digit_a_separator_or_a_symbol_changes_exact_match(one: tuple[str, ...], other: tuple[str, ...]):
    first, second = "".join(one), "".join(other)
    assert equals_any(first, [second]) == float(first == second)


@settings(deadline=None)
@given(PARTS, st.data())
def test_changing_one_part_alone_changes_exact_match(parts: tuple[str, ...], data: st.DataObject):
    at = data.draw(st.integers(0, len(parts) - 1))
    changed = (*parts[:at], data.draw(PARTS)[at], *parts[at + 1 :])
    first, second = "".join(parts), "".join(changed)
    assert equals_any(f"about {first} of it", [f"about {second} of it"]) == float(first == second)


@pytest.mark.parametrize("piece", ["1", "100 ", "³", "5^-", "1'"])
def test_a_text_of_one_hundred_thousand_figures_is_read_in_one_go(piece: str):
    assert normalise(piece * 100_000 + "5").endswith("5")  # quadratic, it would take a quarter of an hour


@given(PLAIN_TEXT | ANY_TEXT)
def test_plain_words_take_a_shorter_way_to_the_same_form(text):
    assert normalise(text) == normalise_any(text)
