"""Write EVAL.md: what is measured, by layer, and what a gate is, on one page.

    python docs/make_eval_page.py

All of it is read from the declarations of metrics, rubrics and gates; a test holds the file against them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_rageval.gates.gate import GATE_FORM
from pytest_rageval.gates.regression import DEFAULT_REGRESSIONS, REGRESSION_FORM
from pytest_rageval.judges.rubrics import rubric_names
from pytest_rageval.links import SITE
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.doc_parts import doc_parts
from pytest_rageval.metrics.layer_titles import by_layer
from pytest_rageval.metrics.registry import Metric

PAGE = Path(__file__).parents[1] / "EVAL.md"
OPENING = f"""\
# What is evaluated

Every metric, layer and gate on one page, written by `python docs/make_eval_page.py` from the declarations in the code.
Sources, options and examples: [metrics]({SITE}/metrics.html). Which gates are in force: [gates]({SITE}/gates.html).

## From a case to a verdict

1. A **case** holds a question and what is known of its right answer (its *gold*).
2. The system is asked. Its **answer**, the chunks that it retrieved and what else it reports are the **observation**.
3. A **metric** is a function of one observation. It gives a number, or says why it has none: *not applicable* is never
   zero, and is left out of means and counted.
4. A **gate** is a limit on a metric. A case passes if all its gates hold, and at least one has looked at its gold.
5. The **run** is compared case by case with the **baseline**, a run that was accepted. A drop beyond its tolerance
   fails the run.

## Layers and metrics

`@k` stands for a cut-off, as in `recall_any@5`; `[@k]` for one that may be left out. A gate in the last column is in
force by default, in cases where the metric has a value.
"""


def eval_page() -> str:
    return "\n".join([OPENING, *_layers(), *_rubrics(), *_gates()]) + "\n"


def _layers() -> Iterator[str]:
    for title, metrics in by_layer(load_registry()).items():
        yield f"### {title}\n"
        yield "| metric | definition | range | better | default gate |\n| --- | --- | --- | --- | --- |"
        yield from map(_row, metrics)
        yield ""


def _row(metric: Metric) -> str:
    definition = _cell(doc_parts(metric).definition)
    gates = ", ".join(f"`{gate}`" for gate in metric.gates)
    return f"| `{metric.label}` | {definition} | {metric.values} | {metric.better} | {_cell(gates)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _rubrics() -> Iterator[str]:
    names = ", ".join(f"`{name}`" for name in rubric_names())
    yield "## Rubrics\n"
    yield "A rubric is a question to a judge. Judged metrics need one, and gate by default only where a model judged."
    yield f"The rubrics are {names}. When each is asked: [judges]({SITE}/judges.html).\n"


def _gates() -> Iterator[str]:
    drops = ", ".join(f"`{gate}`" for gate in DEFAULT_REGRESSIONS)
    yield "## Gates\n"
    yield "| gate | form | decides |\n| --- | --- | --- |"
    yield f"| of a case | `{GATE_FORM}` | whether the test of the case passes |"
    yield f"| of the run | `run {GATE_FORM.partition(' [when')[0]}` | on the mean over all cases |"
    yield f"| of a regression | `{_cell(REGRESSION_FORM)}` | on the change since the baseline |"
    yield f"\nBy default the changes {drops} are tolerated. A larger one fails the run;"
    yield "on generated text it must also be significant. `METRIC off` takes the gates of a metric away.\n"
    yield "| outcome of a case | meaning |\n| --- | --- |"
    yield "| passed | all gates that apply hold |"
    yield "| failed | a gate does not hold; the message names it |"
    yield "| error | asking, judging or scoring broke: no score, and never a zero |"
    yield "| skipped | nothing in the case could be scored |"
    yield "| xfailed | a gate does not hold, and the baseline knows that |"


if __name__ == "__main__":
    PAGE.write_text(eval_page(), encoding="utf-8")
