"""Ways in which a run could end 0 although it must not, as tables: what is odd about a project, and what must be said.

Each attempt begins with a project of four cases that pass, and changes one thing. It must end with another exit code
than 0; where `said` is given, exit code 0 is allowed with these words on the screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Attempt:
    """One attempt at a false green.

    files        written into the project, beside or in place of the usual ones
    table        lines of [tool.rageval]; further tables may follow them
    arguments    of pytest, or of `rageval` where `verb`
    environment  variables of the run
    first        arguments of runs before, which must end 0
    said         words that make an exit code of 0 no lie
    """

    name: str
    files: Mapping[str, str] = field(default_factory=dict)
    table: str = 'target = "bot:answer"'
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    first: tuple[tuple[str, ...], ...] = ()
    between: Mapping[str, str] = field(default_factory=dict)
    verb: bool = False
    said: str = ""


BOT = "import os, sys, asyncio, math\ndef answer(question):\n"
RAISED = [
    "ValueError('x')", "SystemExit(0)", "SystemExit()", "KeyError(0)", "StopIteration()", "StopAsyncIteration()",
    "GeneratorExit()", "asyncio.CancelledError()", "TimeoutError()", "AssertionError()", "RecursionError()",
    "MemoryError()", "BaseException('x')", "OSError(0, '')", "UnicodeError()", "Warning('x')", "NotImplementedError()",
]  # fmt: skip
RETURNED = [
    "None", "7", "True", "[]", "{}", "()", "b'Water boils at 100 degrees at sea level.'", "math.nan", "object()",
    "{'answer': None}", "{'answer': 7}", "{'answer': ['Water']}", "{'answer': ''}", "''", "' '",
    "{'answer': 'I do not know.'}",
    "{'answer': 'Water boils at 100 degrees at sea level.', 'abstained': True}", "{'answer': '\\ud800'}",
    "{'answer': '', 'error': 'overloaded'}", "{'answer': '', 'tool_calls': [{'name': 'x'}]}",
    "{'retrieved_chunks': []}",
    "{'debug': {'retrieved_chunks': [{'rank': 'one'}]}, 'answer': 'x'}", "question",
    "'Water boils at 90 degrees at sea level.'",
    "'Water does not boil at 100 degrees at sea level.'", "ValueError('x')", "ValueError",
    "lambda: 'x'", "sys", "{1: 2}",
    "{'answer': 'x', 'usage': {'n': math.nan}}", "(i for i in ())", "iter([])", "asyncio.sleep(0)",
]  # fmt: skip
PYTEST_OUTCOMES = [
    "pytest.skip('x')", "pytest.xfail('x')", "pytest.exit('x', 0)", "pytest.exit('x')", "pytest.fail('x')",
    "pytest.importorskip('not_there')",
]  # fmt: skip
MODULES = {
    "bot that cannot be imported": "import not_there\n",
    "bot with a mistake": "def answer(question)\n    return 'x'\n",
    "bot that exits at import": "import sys\nsys.exit(0)\n",
    "bot that skips at import": "import pytest\npytest.skip('no', allow_module_level=True)\n",
    "bot that raises at import": "raise SystemExit(0)\n",
    "bot without the function": "def answr(question):\n    return 'x'\n",
    "bot whose function is no function": "answer = 'Water boils at 100 degrees at sea level.'\n",
    "bot whose function is None": "answer = None\n",
    "bot that needs two arguments": "def answer(question, key):\n    return 'x'\n",
    "bot that needs none": "def answer():\n    return 'x'\n",
    "answer that equals everything": (
        "class Sly(str):\n    def __eq__(self, other): return True\n    __hash__ = str.__hash__\n"
        "    def __contains__(self, part): return True\n    def lower(self): return self\n"
        "def answer(question):\n    return Sly('Bananas are yellow.')\n"
    ),
    "object with every attribute": (
        "class Any:\n    def __getattr__(self, name):\n        return Any()\n"
        "    def __call__(self, *a, **k): return Any()\n"
        "def answer(question):\n    return Any()\n"
    ),
    "dictionary that lies": (
        "class Sly(dict):\n    def get(self, name, other=None): return True\n"
        "    def __contains__(self, name): return True\n"
        "def answer(question):\n    return Sly(answer='Bananas are yellow.')\n"
    ),
    "chunks that match everything": (
        "class Sly(str):\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n"
        "    __hash__ = str.__hash__\n    def startswith(self, *a): return True\n"
        "    def endswith(self, *a): return True\n"
        "def answer(question):\n    chunks = [{'rel_path': Sly('no.md'), 'chunk_id': Sly('x')}]\n"
        "    return {'answer': 'Water boils at 100 degrees at sea level.', 'debug': {'retrieved_chunks': chunks}}\n"
    ),
    "bot that hangs": "import time\ndef answer(question):\n    time.sleep(3)\n    return 'x'\n",
    "bot that sometimes raises": (
        "import bot_before\ndef answer(question):\n    if 'boiling' in question:\n        raise ValueError\n"
        "    return bot_before.answer(question)\n"
    ),
}  # fmt: skip


def bots() -> Iterator[Attempt]:
    for raised in RAISED:
        yield Attempt(f"bot raises {raised}", {"bot.py": f"{BOT}    raise {raised}\n"})
    for returned in RETURNED:
        yield Attempt(f"bot returns {returned}", {"bot.py": f"{BOT}    return {returned}\n"})
    for outcome in PYTEST_OUTCOMES:
        yield Attempt(f"bot calls {outcome}", {"bot.py": f"import pytest\ndef answer(question):\n    {outcome}\n"})
    for name, source in MODULES.items():
        yield Attempt(name, {"bot.py": source}, table='target = "bot:answer"\ntimeout = 0.3\nretries = 0')


JUDGED = 'target = "bot:answer"\njudge_cache = "off"\nretries = 0\n'
GROUNDED = '\n[tool.rageval.gates]\ncase = ["groundedness >= 3"]'
PLAIN_JUDGE = "class Plain:\n    async def score_groundedness(self, answer, context):\n        {}\nplain = Plain()\n"
JUDGES = {
    "a judge of a misspelt kind": 'judge = "lexcal"',
    "a judge of a misspelt provider": 'judge = "opnai:m@http://127.0.0.1:9"',
    "a judge that is not there": 'judge = "openai:m@http://127.0.0.1:9"',
    "a judge without a key": 'judge = "openai:m"',
    "a judge of a module that is not there": 'judge = "not_there:judge"',
    "a judge of an attribute that is not there": 'judge = "own:nothing"',
    "no judge and a gate on it": 'judge = "none"',
    "a constant below the gate": 'judge = "stub:2"',
    "a constant that is no number": 'judge = "stub:high"',
    "a constant that is NaN": 'judge = "stub:nan"',
    "an empty judge": 'judge = ""',
    "replay of a cache that is not there": 'judge = "openai:m-2026-01-01@http://127.0.0.1:9"\njudge_cache = "replay"',
    "a mode of the cache that is not known": 'judge = "lexical"\njudge_cache = "rpelay"',
}
SAID_BY_JUDGES = [
    "return None", "return math.nan", "return math.inf", "return -1", "return 99", "return 'five'",
    "return {}", "return [5]",
    "return True", "raise ValueError('x')", "raise SystemExit(0)",
    "import pytest; pytest.skip('x')", "return {'score': None}",
    "return {'score': '5/5!'}", "import pytest; pytest.exit('x', 0)",
]  # fmt: skip


def judges() -> Iterator[Attempt]:
    for name, table in JUDGES.items():
        settings = 'target = "bot:answer"\nretries = 0\n' + table
        yield Attempt(name, {"own.py": "judge = None\n"}, table=settings + GROUNDED)
    for said in SAID_BY_JUDGES:
        source = "import math\n" + PLAIN_JUDGE.format(said)
        yield Attempt(f"judge: {said}", {"own.py": source}, table=f'{JUDGED}judge = "own:plain"{GROUNDED}')
    skipped = ("--rageval-skip", "judges")
    yield Attempt("judges skipped, and a gate on one", table=f'{JUDGED}judge = "stub:5"{GROUNDED}', arguments=skipped)
    for cases in ("judge", "groundedness"):
        yield Attempt(f"skip {cases}", table=f'{JUDGED}judge = "stub:5"{GROUNDED}', arguments=("--rageval-skip", cases))


GATES = [
    "recal_any >= 0.5", "recall_any > = 0.5", "recall_any >= 0.5x", "recall_any@0 >= 0.5", "recall_any@x >= 0.5",
    "recall_any >= abc", "recall_any >= '0.5'", "recall_any =< 0.5", "recall_any => 0.5", "recall_any", ">= 0.5",
    "recall_any >=", "recall_any >= nan", "recall_any >= inf", "recall_any >= 1.5",
    "recall_any >= 150%", "recall_any >= 0,5",
    "recall_any >= 0.5 when categry=factual", "recall_any >= 0.5 when category=facts", "recall_any >= 0.5 when",
    "recall_any >= 0.5 if category=factual", "run recal >= 0.5", "rnu recall_any >= 0.5", "recall_any>=0.5>=0.7", "",
    "key_fact_recall >= 0.5", "recall_any >= 0.5; mrr >= 2", "recall_any of", "RECALL_ANY >= 0.5",
    "mrr <= 0.5", "run mrr <= 0.5", "run pass_rate >= 101%", "run no_such_rate >= 0", "latency_ms >= -5 ms",
]  # fmt: skip
GATE_TABLES = {
    "gates as a text": 'gates = "recall_any >= 2"',
    "a list of gates as a text": '[tool.rageval.gates]\ncase = "recall_any >= 2"',
    "gates under a misspelt table": '[tool.rageval.gate]\ncase = ["mrr >= 2"]',
    "gates under a misspelt key": '[tool.rageval.gates]\ncases = ["mrr >= 2"]',
    "a gate as a number": "[tool.rageval.gates]\ncase = [0.5]",
    "a gate as a table": '[tool.rageval.gates]\ncase = [{ metric = "mrr", min = 2 }]',
    "gates of the run under a misspelt key": '[tool.rageval.gates]\nruns = ["mrr >= 2"]',
    "a gate in a list in a list": '[tool.rageval.gates]\ncase = [["mrr >= 2"]]',
    "gates beside the table": 'case = ["mrr >= 2"]',
    "a regression gate of another form": 'regression = ["mrr"]',
    "a regression gate of a metric that is not known": 'regression = ["mmr max_drop 0.1"]',
    "a drop beyond the scale": 'regression = [{ metric = "mrr", max_drop = 5 }]',
    "a drop of the whole scale": 'regression = [{ metric = "mrr", max_drop = 1 }]',
    "a rise beyond the scale": 'regression = ["scope_miss rise 10"]',
    "a drop beyond 100 %": 'regression = ["mrr drop 200%"]',
    "a limit and its off": '[tool.rageval.gates]\ncase = ["exact_match >= 1", "exact_match off"]',
    "an off and its limit": '[tool.rageval.gates]\ncase = ["exact_match off", "exact_match >= 1"]',
    "an off beside a limit for some": ('[tool.rageval.gates]\ncase = ["mrr off", "mrr <= 0.5 when category=factual"]'),
    "a limit with an exception": ('[tool.rageval.gates]\ncase = ["mrr <= 0.5", "mrr off when category=factual"]'),
    "a limit and its off for the same cases": (
        '[tool.rageval.gates]\ncase = ["mrr >= 1 when category=factual", "mrr off when category=factual"]'
    ),
    "an off for cases that are not there": '[tool.rageval.gates]\ncase = ["recall_any off when category=nothing"]',
    "a table twice": '[tool.rageval.gates]\ncase = ["mrr >= 2"]\n[tool.rageval.gates]\ncase = []',
    "a table that is no TOML": "[tool.rageval.gates\n",
}


def gates() -> Iterator[Attempt]:
    for gate in GATES:
        yield Attempt(f"gate {gate!r}", arguments=("--rageval-gate", gate))
    for tolerance in ("mrr drop 5", "mrr drop 200", "scope_miss rise 1.5"):
        yield Attempt(f"regression {tolerance!r}", arguments=("--rageval-regression", tolerance))
    for name, table in GATE_TABLES.items():
        yield Attempt(name, table=f'target = "bot:answer"\n{table}')
