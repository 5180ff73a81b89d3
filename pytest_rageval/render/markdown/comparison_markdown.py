"""Two runs side by side as a comment on a pull request: short tables first, each flipped question folded away."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from pytest_rageval.comparison import comparison_words as words
from pytest_rageval.comparison.gate_lines import gate_line
from pytest_rageval.io.suggestions import and_more, listed
from pytest_rageval.render.markdown.markdown_text import escaped
from pytest_rageval.render.text.columns import shortened
from pytest_rageval.text import printable

LONGEST = 60_000
"""Characters: GitHub refuses a comment of more than 65,536."""
SHOWN_FLIPS = (20, 10, 5, 2, 0)
"""Cases of each kind in full: as many as keep the comment short enough."""
SHOWN_ROWS = 30
SHOWN_CASES = 10
NAME, TEXT = 120, 300
"""Characters of a name, and of a text, that are shown."""
MARKS: Mapping[words.Tone, str] = {"better": "✅", "worse": "❌", "doubtful": "⚠️", "plain": "➖"}


def comparison_markdown(content: Mapping[str, Any]) -> str:
    """The whole comment, never longer than `LONGEST`. Texts of cases and systems stand in it as code, cut."""
    for most in SHOWN_FLIPS:
        text = "\n".join(_parts(content, most)).rstrip() + "\n"
        if len(text) <= LONGEST:
            break
    return text if len(text) <= LONGEST else text[: LONGEST - 2].rpartition("\n")[0] + "\n…\n"


def _parts(content: Mapping[str, Any], most: int) -> Iterator[str]:
    yield f"## {MARKS[words.TONES[content['verdict']['tone']]]} {as_name(words.verdict_line(content), 1000)}"
    yield ""
    yield from (f"- {side}: {as_name(words.side(content[side]), 400)}" for side in ("before", "after"))
    yield ""
    for problem in words.problems(content):
        yield f"> ⚠️ **{as_name(problem, 1000)}**"
        yield ">"
    for note in content["notes"]:
        yield f"> {as_name(note, 1000)}"
        yield ">"
    yield ""
    yield from _configuration(content)
    if content["compared"]:
        yield from ["### Metrics", ""] * bool(words.metric_rows(content))
        yield from metric_table(content)
        yield from _gates(content)
        yield from _categories(content)
        for name in ("flipped_to_fail", "flipped_to_pass", "unmeasured"):
            yield from _flips(content, name, most)
        yield from _one_sided(content)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], what: str, most: int = SHOWN_ROWS) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + " --- |" * len(head)
    for row in rows[:most]:
        yield "| " + " | ".join(row) + " |"
    yield ""
    if len(rows) > most:
        yield and_more(len(rows) - most, what)
        yield ""


def _configuration(content: Mapping[str, Any]) -> Iterator[str]:
    changed = content["changed"]
    yield f"{'⚠️ ' if changed['warning'] else ''}{as_name(changed['said'], 400)}"
    yield ""
    rows = [[f"`{_code(name)}`", as_code(was), as_code(now)] for name, was, now in words.configuration_rows(content)]
    if rows:
        yield from _table(["setting", "before", "after"], rows, "settings")


def metric_table(content: Mapping[str, Any], most: int = SHOWN_ROWS) -> Iterator[str]:
    """Yield the metrics that moved, as a table, and how many did not."""
    metrics = words.metric_rows(content)
    if metrics:
        head = ["metric", "before", "after", "change", "95 %", "p", "n", "verdict"]
        rows = [
            [
                as_name(metric["label"]),
                *words.numbers(metric),
                str(metric["n_paired"]),
                f"{MARKS[words.tone(metric)]} {metric['verdict']}",
            ]
            for _, metric in metrics
        ]
        yield from _table(head, rows, "metrics", most)
    if rest := words.quiet_metrics(content):
        yield rest
        yield ""


def _gates(content: Mapping[str, Any]) -> Iterator[str]:
    verdicts = {True: "✅ holds", False: "❌ **fails**", None: "➖ says nothing"}
    for gate in content["gates"]:
        yield f"- {verdicts[gate['passed']]}: {as_name(gate_line(gate), 400)}"
    yield ""


def _categories(content: Mapping[str, Any]) -> Iterator[str]:
    rows = [[as_name(row[0]), *row[1:]] for row in words.category_rows(content)]
    if rows:
        yield "### By category"
        yield ""
        yield from _table(
            ["category", "cases", "passed", "to fail", "to pass", *words.layers(content)], rows, "categories"
        )


def _flips(content: Mapping[str, Any], name: str, most: int) -> Iterator[str]:
    cases = content[name]
    if not cases:
        return
    yield f"### {words.TITLES[name]} ({len(cases)})"
    yield ""
    for case in cases[:most]:
        yield from _case(case)
    rest = [case["case_key"] for case in cases[most:]]
    if rest:
        yield ("and " if most else "") + as_name(listed(rest, SHOWN_CASES), 2000)
        yield ""


def _case(case: Mapping[str, Any]) -> Iterator[str]:
    detail = case["detail"]
    why = "; ".join(words.failed_gates(case))
    yield f"<details><summary>{as_html(case['case_key'])}{f' – {as_html(why, TEXT)}' if why else ''}</summary>"
    yield ""
    if case.get("scores"):
        yield f"- scores: {as_name(words.moved_scores(case, 8), TEXT)}"
    if detail is None:
        yield "- no record of this case was kept"
    else:
        if detail["question"] is not None:
            yield f"- question: {as_code(detail['question'])}"
        yield from (f"- {gold}: {move}, {as_code(place, NAME)}" for gold, move, place in words.gold_rows(detail))
        yield from (f"- {name}: {as_code(text)}" for name, text in words.answers(detail))
        yield ""
        yield from _chunks(detail)
    yield ""
    yield "</details>"
    yield ""


def _chunks(detail: Mapping[str, Any]) -> Iterator[str]:
    """Both lists of chunks beside one another, rank by rank."""
    before, after = words.chunk_rows(detail, "before"), words.chunk_rows(detail, "after")
    rows = []
    for number in range(max(len(before), len(after))):
        was = before[number] if number < len(before) else ("", "", "")
        now = after[number] if number < len(after) else ("", "", "")
        rows.append([was[0] or now[0], _place(was), was[2], _place(now), now[2]])
    if rows:
        yield from _table(["rank", "before", "", "after", ""], rows, "chunks")


def _place(row: tuple[str, str, str]) -> str:
    return as_code(row[1], NAME) if row[1] else ""


def _one_sided(content: Mapping[str, Any]) -> Iterator[str]:
    for name in words.ONE_SIDED:
        if content[name]:
            yield f"- {words.TITLES[name]} ({len(content[name])}): {as_name(listed(content[name], SHOWN_CASES), 2000)}"
    if errors := words.errors(content):
        yield f"- {as_name(errors)}"


def as_name(text: str, most: int = NAME) -> str:
    """A name, or a sentence of ours with names in it, shown as it is: no mention, reference or link comes of it."""
    return _REFERENCE.sub(r"<code>\1</code>", _unlinked(escaped(shortened(text, most))))


def as_code(text: str, most: int = TEXT) -> str:
    """A text of a case or a system, as code: nothing in it is looked up."""
    return f"<code>{_unlinked(escaped(shortened(text, most)))}</code>"


def as_html(text: str, most: int = NAME) -> str:
    """A name within a block of HTML, where a reader takes nothing for Markdown and no backslash escapes anything."""
    shown = _REFERENCE.sub(r"<code>\1</code>", escape(printable(shortened(text, most)), quote=False))
    return shown.replace("://", "&#58;//").replace("www.", "www&#46;")


def _code(name: str) -> str:
    return shortened(printable(name), NAME).replace("`", "'").replace("|", "\\|")


def _unlinked(text: str) -> str:
    """Without what would become a link by itself."""
    return text.replace("://", "\\://").replace("www.", "www\\.")


_REFERENCE = re.compile(r"(?<!\w)\\?([@#])(?=\w)")
"""What GitHub takes for a person or an issue, even where the sign is escaped: not inside of code."""
