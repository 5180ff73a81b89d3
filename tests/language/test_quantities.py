"""Quantities by their names: which texts mean the same one, and which do not."""

from __future__ import annotations

import pytest

from pytest_rageval.language.words import normalise
from pytest_rageval.metrics.answer import best_f1, equals_any, stated_facts

EQUAL = """
two years | 2 years | 2 yrs | zwei Jahre | deux ans | dos años | 2년 | 2年
twelve months | 12 months | zwölf Monate | douze mois | doce meses | 12개월 | 12ヶ月 | 12个月 | 十二个月
24 months | twenty-four months | vierundzwanzig Monate | vingt-quatre mois | veinticuatro meses | 二十四个月
a deadline of three days | a deadline of 3 days
one hour | 1 hour | eine Stunde | une heure | una hora | 1시간 | 한 시간 | 1時間
5 March 2024 | March 5, 2024 | 5th of March 2024 | 2024-03-05 | 2024/03/05 | 5. März 2024 | 05.03.2024 | 5 mars 2024
5 March 2024 | 5 de marzo de 2024 | 2024년 3월 5일 | 2024年3月5日
25/12/2024 | 12/25/2024 | 25 December 2024
July 2018 | Juli 2018 | julio de 2018 | 2018년 7월 | 2018年7月
3월 5일 | 3月5日 | March 5
3 pm | 3 p.m. | 15:00 | 15 Uhr | 15h00 | 오후 3시 | 午後3時 | 下午3点 | a las 3 de la tarde
9:30 am | 09:30 | 9.30 Uhr | 오전 9시 30분 | 上午9点30分
12 am | 0:00
5 million | 5,000,000 | 5 Mio. | 5 Millionen | 5 millones | 500만 | 500万
2.5 billion | 2,500,000,000 | 2,5 Mrd. | 2,5 milliards | 25억 | 25亿
12,000 | 12 thousand | 12천 | 1.2만
$5 million | 5 million dollars | USD 5 million | 5 Mio. US-Dollar | $5m
59 euros | €59 | 59 € | EUR 59 | 59 Euro | 59유로 | 59ユーロ | 59欧元
50,000 won | 5만 원 | 50,000원 | ₩50,000
500 yen | 500円 | ¥500
500 yuan | 500元 | CNY 500
up to 5 | at most 5 | ≤5 | no more than five | bis zu 5 | höchstens 5 | jusqu'à 5 | hasta 5 | 최대 5 | 最多5
at least 18 | ≥18 | mindestens 18 | au moins 18 | al menos 18
18세 이상 | ≥18세
more than 10 km | > 10 km | mehr als 10 km
10 km | 10 kilometers | 10 kilometres | 10 Kilometer | 10 kilómetros | 10킬로미터 | 10公里
5 kg | 5 kilograms | 5 Kilogramm | 5킬로그램 | 5公斤
100 km/h | 100 kilometers per hour | 100 Kilometer pro Stunde
25 °C | 25 degrees Celsius | 25 Grad Celsius
5 MB | 5 megabytes | 5MB | 5 MBytes
5 Mb | 5 megabits | 5 Mbit
100 Mbit/s | 100 Mbps | 100 Mb/s
a two-year warranty | a 2-year warranty | 2 year warranty
3.5% | 3.5 percent | 3,5 Prozent | 3.5퍼센트
"""
DIFFERENT = """
5 MB | 5 Mb
5 MB | 5 GB
5 MBps | 5 Mbps
Python 3 | Python 3.0
Windows 8 | Windows 8.0
3월 5일 | 5월 3일
3月5日 | 5月3日
5 March | 3 May
5 March 2024 | 5 March 2023
10 wins and 3 losses | 3 wins and 10 losses
2 adults and 3 children | 3 adults and 2 children
up to 5 | 5
up to 5 | at least 5
at least 5 | more than 5
3 pm | 3 am
15:00 | 5:00
12 am | 12 pm
5 million | 5 billion
5만 | 5천
5억 | 5만
5 euros | 5 dollars
500円 | 500元
24 months | 24 years
10 km | 10 miles
two | three
twenty-four | twenty
fünf | vier
三年 | 二年
세 시간 | 두 시간
5/3/2024 | 2024-03-05
7 ms | 7 m/s
"""


def pairs(table: str) -> list[tuple[str, str]]:
    """The first text of each line with each of the others."""
    found = []
    for line in table.strip().splitlines():
        first, *others = line.split(" | ")
        found += [(first, other) for other in others]
    return found


@pytest.mark.parametrize(("one", "other"), pairs(EQUAL))
def test_a_quantity_is_the_same_by_any_of_its_names(one: str, other: str):
    assert normalise(one) == normalise(other)
    assert equals_any(one, [other]) == best_f1(one, [other]) == 1


@pytest.mark.parametrize(("one", "other"), pairs(DIFFERENT))
def test_another_quantity_is_never_the_same(one: str, other: str):
    assert equals_any(one, [other]) == 0
    assert best_f1(one, [other]) < 1
    is_compared = one.startswith("up to ") and one.endswith(f" {other}")
    assert stated_facts(one, [other]) == [is_compared]


def test_a_fact_that_compares_needs_its_comparison_and_another_one_forbids_none():
    assert stated_facts("It takes 5 days.", ["up to 5 days"]) == [False]
    assert stated_facts("Up to 50,000 mails may be sent each month.", ["50,000", "mails"]) == [True, True]


@pytest.mark.parametrize(
    "text",
    [
        "May I come in?",
        "they march on",
        "no one knows",
        "The Second World War",
        "이 제품",
        "一般的",
        "日本の本",
    ],
)
def test_words_that_are_no_numbers_stay(text: str):
    assert not any(character.isdigit() for character in normalise(text).replace("3rd", ""))


@pytest.mark.parametrize(
    "piece", ["two ", "5 March ", "up to 5 ", "3 pm ", "5억 ", "十二个月", "한 시간 ", "5-", "twenty-"]
)
def test_a_long_text_of_named_quantities_is_read_in_one_go(piece: str):
    assert normalise(piece * 30_000)
