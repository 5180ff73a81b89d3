"""Quantities: what is the same however it is written, and that nothing else is."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_rageval.judges.lexical_judge import SMALL_WORDS, terms_in
from pytest_rageval.metrics.answer import best_f1, equals_any, stated_facts
from pytest_rageval.words import normalise

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
9:30|9.30|930|2024-05-01|2024-05-02|20240501|2024/05/01|1.2.3|1.23|123|10.0.0.1|10.0.01|1e5|1e-5|15|3.1|3.10|10^2|102
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
