"""The same questions with promptfoo: `python with_promptfoo.py URL CASES IN_FLIGHT` configures and runs it.

The interpreter may be any; the command is the one of the environment that PROMPTFOO names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

QUESTION = "How is pump number {{number}} primed, and which valve has to be opened for it?"
RECALL = "Number(context.providerResponse.metadata.chunks.some(c => c.heading_path === '# Pump > ## Priming'))"
JUDGE = """
module.exports = async (output, context) => {
  const contexts = context.providerResponse.metadata.chunks.map(c => ({chunk_id: c.chunk_id, text: c.text}));
  const body = JSON.stringify({question: context.prompt, answer: output, contexts});
  const reply = await fetch('URL/judge', {method: 'POST', headers: {'content-type': 'application/json'}, body});
  const {score, reasoning} = await reply.json();
  return {pass: score >= 3, score: score / 5, reason: reasoning};
};
"""
PROVIDER = """
module.exports = class {
  id() { return 'loopback'; }
  async callApi(question) {
    const body = JSON.stringify({question, k: 5});
    const headers = {'content-type': 'application/json'};
    const reply = await fetch('URL/api/v1/ask?debug=true', {method: 'POST', headers, body});
    const answer = await reply.json();
    return {output: answer.answer, metadata: {chunks: answer.debug.retrieved_chunks}};
  }
};
"""


def main(url: str, cases: int, in_flight: int) -> int:
    here = Path.cwd()
    for name, text in (("judge.js", JUDGE), ("provider.js", PROVIDER)):
        (here / name).write_text(text.replace("URL", url), encoding="utf-8")
    configuration = {
        "prompts": [QUESTION],
        "providers": [f"file://{here / 'provider.js'}"],
        "defaultTest": {
            "assert": [
                {"type": "javascript", "value": RECALL},
                {"type": "javascript", "value": f"file://{here / 'judge.js'}"},
            ]
        },
        "tests": [{"vars": {"number": number}} for number in range(cases)],
    }
    (here / "promptfooconfig.json").write_text(json.dumps(configuration), encoding="utf-8")
    options = ["--no-cache", "--no-table", "--no-progress-bar", "--no-write", "-o", "results.json"]
    command = [os.environ["PROMPTFOO"], "eval", "-c", "promptfooconfig.json", "-j", str(in_flight), *options]
    status = subprocess.run(command, cwd=here, check=False).returncode
    stats = json.loads((here / "results.json").read_text(encoding="utf-8"))["results"]["stats"]
    return status or int(stats["successes"] != cases)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
