"""Ways to a false green by what surrounds a case: selection, hooks, baselines, recorded answers, parts of runs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from false_greens import Attempt
from project import SOME, a_missed_case

FAILING = json.dumps(a_missed_case("bad"))
NO_GOLD = '{"id": "bare", "question": "What is the boiling point of water?"}\n'
SHARED = "import pytest\n"


def conftest(hook: str) -> dict[str, str]:
    """A conftest.py, and a third case, which fails."""
    return {"conftest.py": SHARED + hook, "evalcases/bad.jsonl": FAILING + "\n"}


SELECTIONS: dict[str, tuple[str, ...]] = {
    "a word that no case has": ("-k", "nothing_of_the_sort"),
    "a mark that no case has": ("-m", "slow"),
    "all deselected": ("--deselect", "evalcases/a.jsonl"),
    "all ignored": ("--ignore", "evalcases"),
    "ignored by a pattern": ("--ignore-glob", "*.jsonl"),
    "a folder without cases": ("notes",),
    "a file that is not there": ("evalcases/b.jsonl",),
    "a case that is not there": ("evalcases/a.jsonl::nobody",),
    "the plugin switched off": ("-p", "no:rageval"),
    "a portion that is not there": ("--rageval-shard", "3/2"),
    "a portion of none": ("--rageval-shard", "1/0"),
    "a portion of letters": ("--rageval-shard", "one/two"),
    "an unknown layer": ("--rageval-skip", "nonsense"),
    "a metric that is not known": ("--rageval-metrics", "recal"),
    "no repeats": ("--rageval-repeat", "0"),
    "half a repeat": ("--rageval-repeat", "0.5"),
    "a pass rule that is not known": ("--rageval-pass-rule", "sometimes"),
    "a way to treat known failures that is not known": ("--rageval-known-failures", "ignore"),
    "k of 0": ("--rageval-k", "0"),
    "k of letters": ("--rageval-k", "five"),
    "a negative time": ("--rageval-timeout", "-1"),
    "no time": ("--rageval-timeout", "0"),
    "endless time": ("--rageval-timeout", "nan"),
    "no concurrency": ("--rageval-concurrency", "0"),
    "a baseline that is not there": ("--rageval-baseline", "nowhere.json"),
    "a baseline that is a folder": ("--rageval-baseline", "evalcases"),
    "a baseline that is a case file": ("--rageval-baseline", "evalcases/a.jsonl"),
    "a run to resume that is not there": ("--rageval-resume", "yesterday"),
    "the latest run to resume, of none": ("--rageval-resume", "latest"),
    "answers that are not there": ("--rageval-target", "answers:nowhere.jsonl"),
    "answers of a run that is not there": ("--rageval-target", "run:yesterday"),
    "a target that is not known": ("--rageval-target", "htp://localhost:1"),
    "a target that is not there": ("--rageval-target", "http://127.0.0.1:9"),
    "an empty target": ("--rageval-target", ""),
    "a metric of the run that is not measured": ("--rageval-gate", "run key_fact_recall >= 0.1"),
    "a run's name that is a path": ("--rageval-run-id", "../../elsewhere"),
    "retrieval alone, and a gate on answers": ("--rageval-retrieval-only", "--rageval-gate", "run token_f1 >= 0.9"),
    "a layer left out, and a gate on it": ("--rageval-skip", "L5", "--rageval-gate", "run token_f1 >= 0.9"),
}
SAID = {
    "retrieval alone, and a gate on answers": (
        "gates not looked at, since this run leaves out their layer: token_f1 >= 0.9"
    ),
    "a layer left out, and a gate on it": "gates not looked at, since this run leaves out their layer: token_f1 >= 0.9",
    "marks of an expected failure": "xfailed",
    "a start that exits": "Exit: enough",
    "a collection that exits": "Exit: enough",
}
"""What is said of runs that end 0 since somebody asked for that: nothing is hidden."""

HOOKS: dict[str, str] = {
    "a protocol that does nothing": (
        "@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_protocol(item):\n    return True\n"
    ),
    "a protocol that leaves one out": (
        "@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_protocol(item):\n"
        "    return True if item.name == 'bad' else None\n"
    ),
    "a loop that runs nothing": "@pytest.hookimpl(tryfirst=True)\ndef pytest_runtestloop(session):\n    return True\n",
    "a collection that empties": (
        "@pytest.hookimpl(trylast=True)\ndef pytest_collection_modifyitems(items):\n    items.clear()\n"
    ),
    "an exit status that is set": (
        "@pytest.hookimpl(trylast=True)\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0\n"
    ),
    "failures that are not counted": (
        "@pytest.hookimpl(wrapper=True, tryfirst=True)\ndef pytest_sessionfinish(session):\n"
        "    session.testsfailed = 0\n"
        "    return (yield)\n"
    ),
    "reports that pass": (
        "@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n    report = yield\n"
        "    report.outcome = 'passed'\n    report.longrepr = None\n    return report\n"
    ),
    "reports that are skipped": (
        "@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n    report = yield\n"
        "    if report.failed:\n        report.outcome = 'skipped'\n        report.longrepr = ('', 1, 'no')\n"
        "    return report\n"
    ),
    "calls whose exception is swallowed": (
        "@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_call(item):\n    try:\n        return (yield)\n"
        "    except BaseException:\n        return None\n"
    ),
    "a call of its own": "@pytest.hookimpl(tryfirst=True)\ndef pytest_pyfunc_call(pyfuncitem):\n    return True\n",
    "items whose test is replaced": (
        "def pytest_collection_modifyitems(items):\n    for item in items:\n        item.runtest = lambda: None\n"
    ),
    "marks of an expected failure": (
        "def pytest_collection_modifyitems(items):\n    for item in items:\n"
        "        item.add_marker(pytest.mark.xfail)\n"
    ),
    "marks of a skip": (
        "def pytest_collection_modifyitems(items):\n    for item in items:\n        item.add_marker(pytest.mark.skip)\n"
    ),
    "a fixture that skips": "@pytest.fixture(autouse=True)\ndef never():\n    pytest.skip('not today')\n",
    "a fixture that expects failure": "@pytest.fixture(autouse=True)\ndef never():\n    pytest.xfail('not today')\n",
    "a fixture that exits": "@pytest.fixture(autouse=True)\ndef never():\n    pytest.exit('enough', 0)\n",
    "no system": "@pytest.fixture(scope='session')\ndef rag_client():\n    return None\n",
    "a system of another type": "@pytest.fixture(scope='session')\ndef rag_client():\n    return 7\n",
    "a system that skips": "@pytest.fixture(scope='session')\ndef rag_client():\n    pytest.skip('no')\n",
    "a start that exits": "def pytest_sessionstart(session):\n    pytest.exit('enough', 0)\n",
    "a collection that exits": "def pytest_collection_finish(session):\n    pytest.exit('enough', 0)\n",
    "a hook on results that raises": "def pytest_rageval_result(item, result):\n    raise ValueError('x')\n",
    "a hook on results that exits": "def pytest_rageval_result(item, result):\n    raise SystemExit(0)\n",
    "a hook on results that skips": "def pytest_rageval_result(item, result):\n    pytest.skip('no')\n",
    "a hook on results that changes them": (
        "def pytest_rageval_result(item, result):\n    object.__setattr__(result, 'outcome', 'passed')\n"
    ),
    "a hook on cases that raises": "def pytest_rageval_case(case):\n    raise ValueError('x')\n",
    "a hook on cases that gives something else": "def pytest_rageval_case(case):\n    return 7\n",
    "a hook on the run that raises": "def pytest_rageval_run_config(config, run_config):\n    raise ValueError('x')\n",
    "a hook on the run with no JSON": (
        "def pytest_rageval_run_config(config, run_config):\n    run_config['x'] = object()\n"
    ),
    "metrics that raise": "def pytest_rageval_metrics(config):\n    raise ValueError('x')\n",
    "metrics that are none": "def pytest_rageval_metrics(config):\n    return [7]\n",
    "a hook whose name is misspelt": "def pytest_rageval_metric(config):\n    return []\n",
}
METRIC = """
from pytest_rageval import metric

@metric(layer="L5", better="higher")
def own(obs):
    \"\"\"Gives what it must not.\"\"\"
    {}

def pytest_rageval_metrics(config):
    return [own]
"""
SCORED = [
    "return float('nan')", "return float('inf')", "return 'high'", "return None", "return []",
    "return object()", "return 1j",
    "raise ValueError('x')", "raise SystemExit(0)", "raise KeyboardInterrupt", "import pytest; pytest.skip('no')",
    "import pytest; pytest.exit('no', 0)", "return 10 ** 400", "return obs.nothing",
]  # fmt: skip
CASE_KEYS = {
    "skip": True, "xfail": True, "enabled": False, "marks": ["skip"], "gate": "off", "gates": [], "expected": "fail",
    "disabled": True, "weight": 0, "pass_rule": 0, "answerable": "yes", "only": True,
}  # fmt: skip


def selections() -> Iterator[Attempt]:
    for name, arguments in SELECTIONS.items():
        yield Attempt(name, arguments=arguments, said=SAID.get(name, ""))
    for content in ("", "\n", "# no case yet\n", "[]", "{}"):
        yield Attempt(f"cases: {content!r}", {"evalcases/a.jsonl": content})
    yield Attempt(
        "cases that are skipped by their file",
        {"evalcases/a.answers.jsonl": NO_GOLD},
        arguments=("evalcases/a.answers.jsonl",),
    )
    yield Attempt("a broken file beside a sound one", {"evalcases/b.jsonl": "{"})
    yield Attempt("a misspelt key beside sound cases", {"evalcases/b.jsonl": '{"id": "x", "qestion": "Why?"}\n'})
    yield Attempt("cases under another name", table='target = "bot:answer"\ncases = ["golds/*.jsonl"]')
    for key, value in CASE_KEYS.items():
        line = json.dumps(a_missed_case("bad") | {key: value})
        yield Attempt(f"a failing case with {key} = {value!r}", {"evalcases/b.jsonl": line + "\n"})


def hooks() -> Iterator[Attempt]:
    for name, hook in HOOKS.items():
        yield Attempt(name, conftest(hook), said=SAID.get(name, ""))
    for scored in SCORED:
        gate = 'target = "bot:answer"\n[tool.rageval.gates]\ncase = ["own >= 0.5"]'
        yield Attempt(f"metric: {scored}", {"conftest.py": METRIC.format(scored)}, table=gate)
        run_gate = 'target = "bot:answer"\n[tool.rageval.gates]\nrun = ["own >= 0.5"]'
        yield Attempt(f"metric of a run's gate: {scored}", {"conftest.py": METRIC.format(scored)}, table=run_gate)


TABLES = {
    "a table of another name": '[tool.ragevl.gates]\ncase = ["mrr >= 2"]',
    "a table with two letters swapped": '[tool.ragveal]\ntarget = "bot:answer"',
    "a table with the package's name": '[tool.pytest_rageval.gates]\ncase = ["mrr >= 2"]',
    "a table with the package's name and a hyphen": '[tool.pytest-rageval.gates]\ncase = ["mrr >= 2"]',
    "a table in capitals": '[tool.Rageval.gates]\ncase = ["mrr >= 2"]',
    "a table outside of tool": '[rageval.gates]\ncase = ["mrr >= 2"]',
    "an own table for gates": '[tool.rageval-gates]\ncase = ["mrr >= 2"]',
}


def tables() -> Iterator[Attempt]:
    for name, table in TABLES.items():
        yield Attempt(name, table=f'target = "bot:answer"\n{table}')
    for variable in ("RAGEVAL_TARGT", "RAGEVAL_GATE", "RAGEVAL_BASELINE", "RAGEVAL_JUDGE_TOKN", "RAGEVAL_"):
        yield Attempt(f"variable {variable}", environment={variable: "x"})
    yield Attempt("no system", table="k = 5")
    yield Attempt("a whole number as a text", table='target = "bot:answer"\nk = "5"')
    yield Attempt("a flag as a text", table='target = "bot:answer"\nallow_partial = "no"')
    yield Attempt("a flag as a number", table='target = "bot:answer"\nstrict_places = 1')


ACCEPT = ("--rageval-update-baseline",)
RIGHT = "Water boils at 100 degrees at sea level."
ANSWERS = {
    "of one case alone": json.dumps({"id": "boil", "answer": RIGHT}),
    "of other cases": json.dumps({"id": "melt", "answer": RIGHT}),
    "twice": "\n".join([json.dumps({"id": "boil", "answer": RIGHT})] * 2),
    "of another question": json.dumps({"id": "boil", "question": "Who won?", "answer": RIGHT}),
    "without an answer": "\n".join(json.dumps({"id": case["id"]}) for case in SOME[:2]),
    "blank": "\n".join(json.dumps({"id": case["id"], "answer": ""}) for case in SOME[:2]),
    "null": "\n".join(json.dumps({"id": case["id"], "answer": None}) for case in SOME[:2]),
    "numbers": "\n".join(json.dumps({"id": case["id"], "answer": 7}) for case in SOME[:2]),
    "broken": "{",
    "nothing": "",
    "a list": "[]",
}
OTHER_QUESTION = "".join(
    json.dumps(case | {"question": f"Is it false? {case['question']}"}) + "\n" for case in SOME[:2]
)
BASELINES = {
    "empty": "", "no JSON": "{", "null": "null", "a list": "[]", "an object": "{}",
    "of another schema": '{"schema": 999}',
    "without cases": '{"schema": 1, "cases": {}}', "a picture": "\x89PNG",
    "another tool's": '{"metrics": {"faithfulness": 0.9}}',
}  # fmt: skip
WORSE = (
    "import bot_before\ndef answer(question):\n"
    "    return bot_before.answer('boiling' if 'freez' in question else question)\n"
)


def recorded() -> Iterator[Attempt]:
    for name, lines in ANSWERS.items():
        yield Attempt(f"answers: {name}", {"x.answers.jsonl": lines + "\n"}, table='target = "answers:x.answers.jsonl"')
    for name, content in BASELINES.items():
        yield Attempt(f"baseline: {name}", {"reports/baseline.json": content})
        named = ("--rageval-baseline", "mine.json")
        yield Attempt(f"named baseline: {name}", {"mine.json": content}, arguments=named)
    yield Attempt("a fall against the baseline", {"bot.py": WORSE}, first=(ACCEPT,))
    report = ("--rageval-known-failures", "report")
    yield Attempt("a fall that is only reported", {"bot.py": WORSE}, first=(ACCEPT,), arguments=report)
    ratchet = ("--rageval-known-failures", "ratchet")
    yield Attempt("a fall behind a ratchet", {"bot.py": WORSE}, first=(ACCEPT,), arguments=ratchet)
    yield Attempt("a ratchet without a baseline", {"bot.py": WORSE}, arguments=ratchet)
    update = ("--rageval-update-baseline",)
    yield Attempt("a fall that becomes the baseline", {"bot.py": WORSE}, first=(ACCEPT,), arguments=update)
    yield Attempt("a failing run that becomes the first baseline", {"bot.py": WORSE}, arguments=update)
    confirm = ("--rageval-confirm", "0")
    yield Attempt("a fall that is not confirmed", {"bot.py": WORSE}, first=(ACCEPT,), arguments=confirm)
    any_trial = ("--rageval-repeat", "3", "--rageval-pass-rule", "any")
    yield Attempt("one of three trials", {"bot.py": WORSE}, arguments=any_trial)
    yield Attempt("answers of a run to another question", {"evalcases/a.jsonl": OTHER_QUESTION},
                  first=(("--rageval-run-id", "one"),), arguments=("--rageval-target", "run:one"))  # fmt: skip
    yield Attempt("a run of another system resumed", first=(("--rageval-run-id", "one"),),
                  arguments=("--rageval-resume", "one", "--rageval-target", "bot_before:answer"))  # fmt: skip
    yield Attempt("a run with other gates resumed", first=(("--rageval-run-id", "one"),),
                  arguments=("--rageval-resume", "one", "--rageval-gate", "mrr >= 2"))  # fmt: skip


PART = ("--rageval-run-id", "part", "--rageval-shard", "1/3")
ONE = ("--rageval-run-id", "one")
VERBS: dict[str, tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]] = {
    "one of two portions merged": ((PART,), ("merge", "part")),
    "a portion merged with itself": ((PART,), ("merge", "part", "part")),
    "a run merged that is not there": ((PART,), ("merge", "part", "other")),
    "a run gated that is not there": ((), ("gate", "latest")),
    "a run gated that fails": ((ONE,), ("gate", "one", "--gate", "mrr >= 2")),
    "a misspelt gate on a stored run": ((ONE,), ("gate", "one", "--gate", "mmr >= 0")),
    "an unmeasured gate on a stored run": ((ONE,), ("gate", "one", "--gate", "run key_fact_recall >= 0")),
    "a baseline of a gate that is not there": ((ONE,), ("gate", "one", "--baseline", "nowhere.json")),
    "runs compared that are not there": ((ONE,), ("compare", "one", "two")),
    "a baseline compared that is not there": ((ONE,), ("compare", "baseline", "one")),
    "cases validated that are not there": ((), ("cases", "validate", "nowhere")),
    "a run scored that is not there": ((), ("score", "latest")),
    "a run with a misspelt option": ((), ("run", "--gat", "mrr >= 0")),
    "a run with a misspelt gate": ((), ("run", "--gate", "mmr >= 0")),
    "a run of no cases": ((), ("run", "nowhere")),
    "a run of a word that no case has": ((), ("run", "-k", "nothing")),
    "a run that fails": ((), ("run", "--gate", "mrr >= 2")),
    "a verb that is not known": ((), ("rnu",)),
}


def verbs() -> Iterator[Attempt]:
    for name, (first, arguments) in VERBS.items():
        yield Attempt(name, first=first, arguments=arguments, verb=True)
