"""The page of all metric definitions, written from their docstrings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import NamedTuple

from pytest_rageval.metrics.answer import Hangul, best_f1
from pytest_rageval.metrics.doc_parts import doc_parts
from pytest_rageval.metrics.layer_titles import by_layer
from pytest_rageval.metrics.registry import Metric, option_types


def metrics_page(metrics: Iterable[Metric]) -> str:
    """Return the whole page as Markdown: prose, the metrics by layer, and the table of languages."""
    prose = files(__package__).joinpath("definitions.md").read_text(encoding="utf-8")
    sections: list[str] = []
    for title, group in by_layer(metrics).items():
        sections.append(f"## {title}\n")
        sections.extend(map(_section, group))
    page = prose.replace("<!-- metrics -->\n", "\n".join(sections))
    return page.replace("<!-- languages -->\n", "\n".join(_languages()))


def _section(metric: Metric) -> str:
    parts = doc_parts(metric)
    facts = {**metric_facts(metric), "not applicable": parts.rule, "source": parts.source}
    options = [name for name in facts if name.startswith("option")]
    first = ("range", "also called", "mean called", "needs", *options, "not applicable")
    rows = {name: facts[name] for name in (*first, *facts) if facts.get(name)}
    lines = [f"### {metric.label}\n", f"{parts.definition}\n"]
    if parts.details:
        lines.append(f"{parts.details}\n")
    lines.append("| | |\n| --- | --- |")
    lines.extend(f"| {name} | {text} |" for name, text in rows.items())
    lead, marker, example = parts.example.partition(">>>")
    if lead.strip():
        lines.append(f"\n{' '.join(lead.split())}")
    lines.append(f"\n```pycon\n{marker}{example}\n```\n" if marker else "")
    return "\n".join(lines)


def metric_facts(metric: Metric) -> dict[str, str]:
    """Return what a metric declares, by the names of the facts; code stands in backticks."""
    types = option_types(metric)
    facts = {
        "range": f"{metric.values}, {metric.better} is better",
        "also called": _code(metric.aliases),
        "mean called": _code([metric.aggregate] if metric.aggregate else []),
        "needs": _code(metric.needs),
        "default gate": _code(metric.gates),
        "on by default": "" if metric.on_by_default else "no: name it in `metrics`",
    }
    for name, parameter in metric.known_options.items():
        choices = " or ".join(_code([f'"{choice}"']) for choice in getattr(types[name], "__args__", ()))
        facts[f"option `{name}`"] = f"{choices}; default `{parameter.default!r}`".replace("'", '"')
    if metric.gates and metric.yields_to:
        facts["default gate"] += f"; not where that of `{metric.yields_to}` looks at the case"
    if metric.gates and metric.settled_by:
        facts["default gate"] += f", nor where `{metric.settled_by}` is 1"
    return {name: text for name, text in facts.items() if text}


def _code(names: Iterable[str]) -> str:
    return ", ".join("`" + name.replace("|", "\\|") + "`" for name in names)


class DefinitionRow(NamedTuple):
    """A gold answer, an answer, and a reader's verdict."""

    gold: str
    answer: str
    reader: str


ROWS = (
    DefinitionRow("서울", "서울입니다.", "right"),
    DefinitionRow("서울", "서울에서는", "right"),
    DefinitionRow("도쿄", "도쿄예요", "right"),
    DefinitionRow("서울", "서울특별시", "right"),
    DefinitionRow("경복궁", "그것은 경복궁이었습니다.", "right"),
    DefinitionRow("시장점유율", "시장 점유율은", "right"),
    DefinitionRow("3.5%", "3.5%입니다.", "right"),
    DefinitionRow("12,000원", "12000 원입니다", "right"),
    DefinitionRow("2024년 3월", "2024년 3월에", "right"),
    DefinitionRow("카메라 두 대", "카메라는 두 대입니다", "right"),
    DefinitionRow("LG전자", "ＬＧ 전자는", "right"),
    DefinitionRow("서울", "부산입니다.", "wrong"),
    DefinitionRow("3.5%", "35%입니다.", "wrong"),
    DefinitionRow("5만 원", "5천 원", "wrong"),
    DefinitionRow("北京", "北京。", "right"),
    DefinitionRow("北京", "是北京市", "right"),
    DefinitionRow("3.5%", "3.5％", "right"),
    DefinitionRow("二十四节气", "24节气", "right"),
    DefinitionRow("北京", "上海", "wrong"),
    DefinitionRow("東京", "東京です。", "right"),
)


def _languages() -> Iterator[str]:
    yield '| gold | answer | a reader says | `hangul = "word"` | `hangul = "char"` |\n| --- | --- | --- | ---: | ---: |'
    for row in ROWS:
        words = f1_of(row, "word")
        characters = f1_of(row, "char")
        yield f"| {row.gold} | {row.answer} | {row.reader} | {words:.2f} | {characters:.2f} |"
    yield ""


def f1_of(row: DefinitionRow, hangul: Hangul) -> float:
    """Return `token_f1` of a row."""
    return best_f1(row.answer, [row.gold], hangul=hangul)
