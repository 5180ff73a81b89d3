"""A bot behind HTTP that keeps the threads of its conversations itself: it is sent the id of one, and no history.

`python bot.py` serves `POST /chat {"thread": "…", "message": "…"}` at port 8081. A question that begins with "And" is
answered from the note that answered the one before it in its thread.
"""

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NOTES = Path(__file__).parent / "notes"
PORT = 8081
FEWEST_SHARED_WORDS = 2
LAST_NOTES = {}
"""The note that the last answer of each thread came from."""


def sections():
    """Yield file, heading and text of each section of the notes."""
    for path in sorted(NOTES.glob("*.md")):
        for part in path.read_text(encoding="utf-8").split("\n## ")[1:]:
            heading, _, text = part.partition("\n")
            yield f"notes/{path.name}", heading, text.strip()


def words(text):
    return set(re.findall(r"\w{3,}", text.lower())) - {"and", "how", "who", "the", "what", "does", "can"}


def reply_to(thread, question):
    """Return the reply of the bot: its text, and the sections that it found."""
    asked = words(question)
    note = LAST_NOTES.get(thread) if question.startswith("And") else None
    found = []
    for file, heading, text in sections():
        shared = len(asked & words(f"{file} {heading} {text}"))
        if shared >= FEWEST_SHARED_WORDS or (shared and file == note):
            found.append((shared + (file == note), file, heading, text))
    found.sort(key=lambda entry: -entry[0])
    if found:
        LAST_NOTES[thread] = found[0][1]
    sources = [{"file": file, "title": heading, "content": text} for _, file, heading, text in found]
    text = sources[0]["content"] if sources else "The notes do not say anything about this."
    return {"reply": {"text": text}, "sources": sources}


class Chat(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["Content-Length"])
        asked = json.loads(self.rfile.read(length))
        body = json.dumps(reply_to(asked["thread"], asked["message"])).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Write no log."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", PORT), Chat).serve_forever()
