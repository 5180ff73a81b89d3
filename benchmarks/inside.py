"""Run the `inside` of one benchmark, and print what it measured as JSON: `python inside.py MODULE ARGUMENTS`."""

from __future__ import annotations

import importlib
import json
import sys

if __name__ == "__main__":
    print(json.dumps(importlib.import_module(sys.argv[1]).inside(**json.loads(sys.argv[2]))))
