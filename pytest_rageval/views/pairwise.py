"""The answers of two runs compared pair by pair, as every face shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_rageval.text import NO_VALUE, counted, dollars_text, percent, short
from pytest_rageval.views.parts import (
    Block,
    FigureTable,
    Fold,
    FoldList,
    LabelledText,
    Line,
    NameList,
    Section,
    TableRow,
    Tone,
)

Content = Mapping[str, Any]
VERDICTS: Mapping[str, tuple[str, Tone]] = {
    "better": ("▲", "better"),
    "worse": ("▼", "worse"),
    "even": ("≈", "plain"),
    "too_few": ("?", "doubtful"),
    "none": ("?", "doubtful"),
}
"""Symbol and tone of each verdict."""
TIES = {
    "equal_answers": "equal answers (not asked about)",
    "judged_equal": "judged equal in both orders",
    "flipped": "another winner in the other order",
    "one_order": "a winner in one order alone",
}
LEFT_OUT = {
    "only_before": "Only before",
    "only_after": "Only after",
    "changed": "Ask another question now",
    "small_talk": "Small talk, not judged",
    "unanswered_before": "No answer before, as after an error",
    "unanswered_after": "No answer after, as after an error",
    "unanswered": "No answer on either side",
}
"""Titles of the lists of cases that are compared with nothing."""
ABSTENTIONS = {"before": "Abstained before, answered after", "after": "Answered before, abstained after"}
ORDERS = ("A shown first", "B shown first")
"""Labels of the judge's reasons."""
ELSEWHERE = "--format json has the outcome of every case"


@dataclass(frozen=True, slots=True)
class PairwiseView:
    """Two runs whose answers a judge compared."""

    head: Section
    """The verdict, and the gates."""
    figures: Section
    """Wins, ties and losses, position flips, lengths, and what was spent."""
    categories: Section
    wins: Section
    """The clearest wins of the run after."""
    losses: Section
    one_sided: Section
    """Errors of the judge, cases without a counterpart, and abstentions on one side."""


def pairwise_view(content: Content) -> PairwiseView:
    """Return the view of the content of a pairwise comparison."""
    return PairwiseView(
        head=tuple(_head(content)),
        figures=tuple(_figures(content)),
        categories=tuple(_categories(content)),
        wins=_cases(content["clearest_wins"], f"Clearest wins of {content['after']['name']}", "better"),
        losses=_cases(content["clearest_losses"], f"Clearest losses of {content['after']['name']}", "worse"),
        one_sided=tuple(_one_sided(content)),
    )


def _head(content: Content) -> Iterator[Block]:
    verdict = content["verdict"]
    symbol, tone = VERDICTS[verdict["word"]]
    yield Line(f"{symbol} {verdict['sentence']}", tone, "title")
    for gate in content["gates"]:
        yield _gate_line(gate)


def _gate_line(gate: Content) -> Line:
    if gate["passed"] is None:
        return Line(f"FAILS: {gate['gate']}: {gate['why']}", "worse", "point")
    figure = f"{gate['gate']}, is {short(gate['value'])}"
    if gate["passed"]:
        return Line(f"holds: {figure}", "better", "point")
    return Line(f"FAILS: {figure}", "worse", "point")


def _figures(content: Content) -> Iterator[Block]:
    for label, side in (("before", content["before"]), ("after", content["after"])):
        words = side["name"]
        if side["run_id"] != words:
            words += f" · run {side['run_id']}"
        yield LabelledText(label, words)
    yield LabelledText("judge", content["judge"]["model"])
    yield LabelledText("cases", _counts_words(content))
    if content["ties"]:
        ties = content["ties_by_reason"]
        reasons = [f"{ties[reason]:,} {words}" for reason, words in TIES.items() if ties[reason]]
        yield LabelledText("ties", ", ".join(reasons))
    yield LabelledText("flips", _flips_words(content["position_flips"]))
    if content["p"] is not None:
        yield LabelledText("p", f"{short(content['p'])} ({_test_name(content)})")
    if content["lengths"]["n"]:
        yield LabelledText("lengths", _lengths_words(content["lengths"]))
    yield LabelledText("spent", _spent_words(content["spent"]))
    for note in content["notes"]:
        yield Line(note, "doubtful", "remark")
    if content["doubtful"]:
        doubtful = counted(len(content["doubtful"]), "pair")
        yield Line(f"a reply of the judge is doubtful in {doubtful}: see `doubtful` in JSON", "doubtful", "remark")


def _counts_words(content: Content) -> str:
    words = f"{content['n']:,}: {counted(content['wins'], 'win')}, {counted(content['ties'], 'tie')}, "
    words += counted(content["losses"], "loss", "losses")
    if content["clusters"] is not None and content["clusters"] != content["n"]:
        words += f", of {counted(content['clusters'], 'conversation')}"
    return words


def _test_name(content: Content) -> str:
    if content["clusters"] == content["n"]:
        return "sign test, without ties"
    return "by conversation"


def _flips_words(flips: Content) -> str:
    if flips["rate"] is None:
        return "none: no pair was put before the judge"
    share = f"{percent(flips['rate'])} of {counted(flips['n'], 'judged pair')}"
    return f"{share}; a verdict needs {percent(flips['most'])} or less"


def _lengths_words(lengths: Content) -> str:
    means = f"winners {lengths['winners']:,.0f} characters, losers {lengths['losers']:,.0f}"
    return f"{means}; the longer won {lengths['longer_won']} of {lengths['n']}"


def _spent_words(spent: Content) -> str:
    words = f"{counted(spent['judgements'], 'new judgement')}, {spent['cached']:,} from the judge cache"
    if spent["judgements"] and spent["cost_usd"] is not None:
        words += f", {dollars_text(spent['cost_usd'])}"
    return words


def _categories(content: Content) -> Iterator[FigureTable]:
    groups: Mapping[str, Content] = content["by_category"]
    rows = []
    for name in sorted(groups, key=lambda name: (-groups[name]["n"], name)):
        group = groups[name]
        interval = group["interval"]
        limits = NO_VALUE
        if interval is not None:
            limits = f"{short(interval['low'])} to {short(interval['high'])}"
        rate = NO_VALUE if group["win_rate"] is None else short(group["win_rate"])
        counts = [str(group[count]) for count in ("n", "wins", "ties", "losses")]
        rows.append(TableRow((name, rate, limits, *counts)))
    if rows:
        heads = ("category", "win rate", "95 %", "n", "wins", "ties", "losses")
        yield FigureTable(heads, tuple(rows), "By category", "categories", least=3, most=12)


def _cases(cases: Sequence[Content], title: str, tone: Tone) -> Section:
    if not cases:
        return ()
    return (FoldList(title, tone, tuple(map(_fold, cases)), len(cases), ELSEWHERE),)


def _fold(case: Content) -> Fold:
    facts = [
        LabelledText("question", "", case["question"]),
        LabelledText("answer before", "", case["answer_before"]),
        LabelledText("answer after", "", case["answer_after"]),
    ]
    # Which answer a reason calls the first one depends on the order.
    for label, reason in zip(ORDERS, case["reasons"], strict=True):
        if reason:
            facts.append(LabelledText(label, "", " ".join(reason.split())))
    return Fold(case["case_key"], (), tuple(facts))


def _one_sided(content: Content) -> Iterator[Block]:
    errors = content["errors"]
    if errors["count"]:
        verb = "counts" if errors["count"] == 1 else "count"
        failed = f"{counted(errors['count'], 'pair')} could not be judged, and {verb} as nothing"
        yield Line(f"{failed}; the first: {errors['first']}", "worse", "remark")
    for name, title in LEFT_OUT.items():
        if content["left_out"][name]:
            yield NameList(title, tuple(content["left_out"][name]))
    for side, title in ABSTENTIONS.items():
        if content["abstentions"][side]:
            yield NameList(title, tuple(content["abstentions"][side]))
