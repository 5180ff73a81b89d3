"""The page of all metric definitions, written from their docstrings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import NamedTuple

from pytest_rageval.metrics.answer import Hangul, best_f1
from pytest_rageval.metrics.registry import LAYERS, DocParts, Metric, doc_parts, option_types

NAMES = {"no": "{}", "always": "{}@k", "optional": "{}[@k]"}
"""The format of a metric's name, by its `takes_k`."""


def metrics_page(metrics: Iterable[Metric]) -> str:
    """Return the whole page as Markdown: prose, the metrics by layer, and the table of languages."""
    prose = files(__package__).joinpath("definitions.md").read_text(encoding="utf-8")
    listed = sorted(metrics, key=lambda metric: list(LAYERS).index(metric.layer))
    return prose.replace("<!-- metrics -->\n", "\n".join(_by_layer(listed))).replace(
        "<!-- languages -->\n", "\n".join(_languages())
    )


def _by_layer(metrics: Iterable[Metric]) -> Iterator[str]:
    layer = None
    for metric in metrics:
        if metric.layer != layer:
            layer = metric.layer
            title = LAYERS[layer]
            yield f"## {title.capitalize() if title == layer else f'{layer} {title}'}\n"
        yield from _metric(metric)


def _metric(metric: Metric) -> Iterator[str]:
    parts = doc_parts(metric)
    yield f"### {NAMES[metric.takes_k].format(metric.name)}\n"
    yield f"{parts.definition}\n"
    if parts.details:
        yield f"{parts.details}\n"
    yield "| | |\n| --- | --- |"
    for name, text in _facts(metric, parts):
        yield f"| {name} | {text} |"
    before, marker, example = parts.example.partition(">>>")
    if before.strip():
        yield f"\n{' '.join(before.split())}"
    yield f"\n```pycon\n{marker}{example}\n```\n" if marker else ""


def _facts(metric: Metric, parts: DocParts) -> Iterator[tuple[str, str]]:
    yield "range", f"{metric.values}, {metric.better} is better"
    if metric.aliases:
        yield "also called", _code(metric.aliases)
    if metric.aggregate:
        yield "mean called", _code([metric.aggregate])
    if metric.needs:
        yield "needs", _code(metric.needs)
    types = option_types(metric)
    for name, parameter in metric.known_options.items():
        choices = " or ".join(_code([f'"{choice}"']) for choice in getattr(types[name], "__args__", ()))
        yield f"option `{name}`", f"{choices}; default `{parameter.default!r}`".replace("'", '"')
    yield "not applicable", parts.rule
    if metric.gates:
        stands_back = f"; not where that of `{metric.yields_to}` looks at the case" if metric.yields_to else ""
        yield "default gate", _code(metric.gates) + stands_back
    if not metric.on_by_default:
        yield "on by default", "no: name it in `metrics`"
    if parts.source:
        yield "source", parts.source


def _code(names: Iterable[str]) -> str:
    return ", ".join("`" + name.replace("|", "\\|") + "`" for name in names)


# ── answers in other scripts ──────────────────────────────────────────────────────────────────────────────────


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
        words, characters = f1_of(row, "word"), f1_of(row, "char")
        yield f"| {row.gold} | {row.answer} | {row.reader} | {words:.2f} | {characters:.2f} |"
    yield ""


def f1_of(row: DefinitionRow, hangul: Hangul) -> float:
    """Return `token_f1` of a row."""
    return best_f1(row.answer, [row.gold], hangul=hangul)
