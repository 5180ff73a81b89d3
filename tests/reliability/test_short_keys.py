"""Short keys of the environment and pieces of long ones are masked; words and versions are left as they are."""

from __future__ import annotations

import pytest
from hostile import REPORTS, leaks
from project import Project, a_case

from pytest_rageval.io.environment_secrets import secrets_of_environment
from pytest_rageval.io.masking import MASK, Mask

pytestmark = pytest.mark.reliability("secrets", "short keys and pieces of long ones", costs="leak")

SHORT_KEYS = ["k3yZq7Xw", "hunter2!x", "s3cr3t-Pw", "abc123DEF", "9f8e7d6c", "Tr0ub4dor&3", "x7#kL9$pQ", "pk_4fj29dk"]
WORDS = [
    "postgres", "changeme", "python3.11", "session-12", "v1.2.3-rc1", "2024-01-31", "12 months", "gpt4", "30 minutes",
    "release_10", "/run/key1", "localhost",
]  # fmt: skip


@pytest.mark.parametrize("key", SHORT_KEYS)
def test_a_short_key_of_the_environment_is_a_secret(key: str):
    mask = Mask(secrets_of_environment({"BOT_API_KEY": key}))
    assert mask.text(f"sent {key} to it") == f"sent {MASK} to it"


@pytest.mark.parametrize("word", WORDS)
def test_a_word_or_version_under_such_a_name_is_left_in_answers(word: str):
    mask = Mask(secrets_of_environment({"BOT_API_KEY": word, "DB_PASSWORD": word}))
    assert mask.text(f"it says {word} there") == f"it says {word} there"


LONG = "Wv8Yb5Nc2Qd9Xf6Zg3HjKp7R"
BOT = """
import logging, os

def answer(question):
    key, short = os.environ["BOT_API_KEY"], os.environ["SHORT_API_KEY"]
    print("out", key[3:20], short)
    logging.getLogger("bot").error("log %s %s", key[:13], short)
    if "raise" in question:
        raise RuntimeError(f"401 for {key[5:22]} and {key[-14:]} and {short}")
    return short
"""


def test_pieces_of_a_key_stand_in_no_message_log_or_output(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BOT_API_KEY", LONG)
    monkeypatch.setenv("SHORT_API_KEY", SHORT_KEYS[0])
    project.write("bot.py", BOT)
    project.cases([a_case("say"), a_case("raise", "raise boiling")])
    result = project.run(*REPORTS)
    assert project.records()["raise"]["error"]["message"] == (
        "bot:answer: RuntimeError: 401 for *** and *** and *** (at bot.py:9)"
    )
    pieces = [LONG[at : at + 8] for at in range(len(LONG) - 7)]
    assert leaks(project, result, traces=[*pieces, SHORT_KEYS[0]]) == []


@pytest.mark.parametrize("at", range(len(LONG) - 11))
def test_every_piece_of_twelve_is_found_and_no_shorter_one_is_taken_for_a_key(at: int):
    mask = Mask([LONG])
    assert mask.message(f"<{LONG[at : at + 12]}>") == f"<{MASK}>"
    assert mask.output(f"<{LONG[at : at + 12]}>") == f"<{MASK}>"
    assert mask.message(f"<{LONG[at : at + 5]}>") == f"<{LONG[at : at + 5]}>"
