"""A bot that answers ten questions about a shop. The environment variable BOT names its version.

The answer about the office was always wrong. Version `worse` gets one more wrong; `swapped` mends the office and gets
another one wrong, so that the pass rate stays the same.
"""

from __future__ import annotations

import os

FACTS = {
    "How long can I return shoes?": "30 days",
    "What does a return cost?": "4 euros",
    "Where is the office?": "Lisbon",
    "When do you open?": "8:00",
    "When do you close?": "19:00",
    "Who founded the shop?": "Ines Duarte",
    "How many shops are there?": "12",
    "Which card do you take?": "Visa",
    "What is the phone number?": "555 0142",
    "How long is the warranty?": "2 years",
}
WRONG = {
    "before": {"Where is the office?": "Porto"},
    "worse": {"Where is the office?": "Porto", "Who founded the shop?": "Rui Costa"},
    "swapped": {"Who founded the shop?": "Rui Costa"},
}


def answer(question: str) -> str:
    """Answer in a sentence."""
    wrong = WRONG[os.environ["BOT"]]
    return f"It is {wrong.get(question, FACTS[question])}."
