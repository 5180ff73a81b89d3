"""A bot with threads of its own: it remembers what was said by the id of the conversation, and is sent no history."""

from __future__ import annotations

BOT = '''
"""Answers by what it remembers of a conversation; each call is a line of asked.txt."""
import json, os, time

THREADS = {}

def answer(question, conversation_id, request):
    if "deadly" in question and not os.path.exists("survive"):
        os._exit(3)
    if "slow" in question and not os.path.exists("fast"):
        time.sleep(600)
    thread = THREADS.setdefault(conversation_id, [])
    said = [turn.text for turn in request.history or ()]
    line = {"pid": os.getpid(), "id": conversation_id, "question": question, "thread": thread, "history": said}
    with open("asked.txt", "a") as file:
        file.write(json.dumps(line) + "\\n")
    time.sleep(0.01)
    if "broken" in question:
        raise ValueError("the index is gone")
    text = f"{question} is number {len(thread) // 2 + 1}."
    THREADS[conversation_id] = [*thread, question, text]
    return {"answer": text, "abstained": False, "retrieved_chunks": [{"rel_path": "notes/a.md", "text": text}]}
'''
