"""Which words exclude one another? Opposites, units of one quantity, months, directions: one is said, or the other."""

from __future__ import annotations

from functools import cache

from pytest_rageval.text import has_hangul

Side = tuple[str, str]
"""What a word belongs to (an axis, named by one of its words), and where on it: words of one side mean the same."""


def sides(word: str) -> tuple[Side, ...]:
    """Where a folded word stands; empty for most words."""
    found = _table().get(word)
    if found is None and len(word) > 2 and has_hangul(word):
        found = _table().get(word[:2])  # 증가율 is still an increase
    return found or ()


def one_spelling(word: str) -> str:
    """The first spelling of a unit, a month or another word of a set: kilometres is km; other words stay."""
    return _spellings().get(word, word)


@cache
def _spellings() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _SETS.splitlines():
        for side in line.strip().split(" / "):
            for word in side.split():
                if len(sides(word)) == 1:
                    found[word] = side.split()[0]
    return found


@cache
def _table() -> dict[str, tuple[Side, ...]]:
    found: dict[str, tuple[Side, ...]] = {}
    for line in (_OPPOSITES + _SETS).splitlines():
        axis = line.strip()
        for side in axis.split(" / ") if axis else ():
            for word in side.split():
                found[word] = (*found.get(word, ()), (axis, side))
    return found


# A line is an axis, " / " parts its sides, words of one side are one for our purpose.
_OPPOSITES = """
    increase increases increased increasing rise rises rose risen rising grow grows grew grown growing gain \
        gains gained / decrease decreases decreased decreasing fall falls fell fallen falling shrink shrinks shrank \
        shrunk drop drops dropped decline declines declined
    raise raises raised raising / lower lowers lowered lowering
    before prior earlier / after later afterwards subsequently
    more / less fewer
    most / least fewest
    higher / lower
    high / low
    highest / lowest
    large big huge / small little tiny
    larger bigger greater / smaller
    largest biggest greatest / smallest
    long / short
    longer / shorter
    longest / shortest
    early / late
    earliest / latest
    above over / below under beneath
    inside within indoor indoors / outside outdoor outdoors
    internal / external
    interior / exterior
    male men man boys boy he / female women woman girls girl she
    old older elderly / young younger
    oldest / youngest newest
    old older / new newer
    open opens opened / closed close closes shut
    allow allows allowed permit permits permitted / prohibit prohibits prohibited forbid forbids forbidden ban \
        banned bans
    accept accepts accepted / reject rejects rejected refuse refuses refused
    include includes included including / exclude excludes excluded excluding
    public / private
    buy buys bought buying purchase purchased / sell sells sold selling
    hot warm / cold cool
    hotter warmer / colder cooler
    positive positively / negative negatively
    always / never
    maximum max / minimum min
    required mandatory compulsory obligatory / optional voluntary
    free / paid
    won win wins winning / lost lose loses losing
    best / worst
    better / worse
    strong / weak
    stronger / weaker
    easy easier easily simple / difficult harder hard
    good / bad
    fast faster quick quicker quickly / slow slower slowly
    safe safely / dangerous unsafe
    true correct / false incorrect wrong
    legal / illegal
    possible / impossible
    able / unable
    enable enables enabled / disable disables disabled
    start starts started begin begins began begun beginning / end ends ended finish finishes finished stop stops \
        stopped
    add adds added adding / remove removes removed removing delete deletes deleted
    import imports imported / export exports exported
    input / output
    up upward upwards / down downward downwards
    full / empty
    heavy heavier / light lighter
    thick thicker / thin thinner
    wide wider / narrow narrower
    deep deeper / shallow shallower
    rich wealthy / poor
    success successful successfully succeeds succeeded / failure unsuccessful failed fails fail
    success / failure
    profit profits profitable / loss losses unprofitable
    alive living / dead
    born / died
    present / absent
    local / remote
    permanent permanently / temporary temporarily
    common / rare uncommon
    often frequently usually / rarely seldom
    majority / minority
    urban / rural
    ancient / modern
    north northern / south southern
    east eastern / west western
    left / right
    front / back rear
    upper / lower
    horizontal horizontally / vertical vertically
    wet / dry
    bright / dark
    day / night
    morning / evening
    winter / summer
    import / export
    credit credits / debit debits
    supply / demand
    lend lends lent lender / borrow borrows borrowed borrower
    teacher teachers / student students
    parent parents / child children
    employer employers / employee employees
    encourage encouraged encourages / discourage discouraged discourages
    support supports supported / oppose opposes opposed
    agree agrees agreed / disagree disagrees disagreed
    advantage advantages / disadvantage disadvantages
    all every / none
    everyone everybody / nobody
    everything / nothing
    both / neither
    domestic / foreign
    single / multiple
    active / inactive
    visible / invisible
    known / unknown
    natural / artificial
    original / copy
    online / offline
    automatic automatically / manual manually
    증가 늘어 늘었 상승 / 감소 줄어 줄었 하락
    이전 전 / 이후 후 다음
    최대 / 최소
    최고 / 최저
    높은 높다 높습니다 / 낮은 낮다 낮습니다
    큰 크다 큽니다 / 작은 작다 작습니다
    많은 많다 많습니다 / 적은 적다 적습니다
    빠른 빠르다 빠릅니다 / 느린 느리다 느립니다
    새로운 / 오래된
    허용 / 금지
    포함 / 제외
    성공 / 실패
    시작 / 종료
    가능 / 불가능
    필수 / 선택
    왼쪽 / 오른쪽
    위쪽 / 아래쪽
    북쪽 / 남쪽
    동쪽 / 서쪽
"""

_SETS = """
    january jan / february feb / march mar / april apr / may / june jun / july jul / august aug / september sep \
        sept / october oct / november nov / december dec
    monday mon / tuesday tue / wednesday wed / thursday thu / friday fri / saturday sat / sunday sun
    월요일 / 화요일 / 수요일 / 목요일 / 금요일 / 토요일 / 일요일
    spring / summer / autumn / winter
    first 1st / second 2nd / third 3rd / fourth 4th / fifth 5th / last final
    red / green / blue / yellow / black / white / orange / purple / pink / brown / grey gray
    mm millimetre millimetres millimeter millimeters / cm centimetre centimetres centimeter centimeters / m \
        metre metres meter meters / km kilometre kilometres kilometer kilometers / mi mile miles / ft foot feet / \
        inch inches / yard yards / µm um micrometre micrometres micron microns / nm nanometre nanometres
    mg milligram milligrams / g gram grams / kg kilogram kilograms kilo kilos / ton tons tonne tonnes / lb lbs \
        pound pounds / oz ounce ounces
    ms millisecond milliseconds / s sec second seconds / min minute minutes / h hour hours / day days / week \
        weeks / month months / year years / decade decades / century centuries
    hundred hundreds / thousand thousands / million millions / billion billions / trillion trillions
    dollar dollars usd / euro euros eur / pound pounds gbp / won krw / yen jpy / cent cents
    percent / points point
    hz hertz / khz / mhz / ghz
    kb / mb / gb / tb
    mw / w watt watts / kw
    mv / v volt volts / kv
    celsius / fahrenheit / kelvin
    초 / 분 / 시간 / 일 / 주 / 개월 / 년
    원 / 달러 / 유로 / 엔
"""
