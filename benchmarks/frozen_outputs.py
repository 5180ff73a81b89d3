"""The outputs of frozen scenarios as text that is equal for equal behaviour and can be read as a diff."""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import re
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

LIBRARIES = ("click", "pydantic", "pytest", "pytest-html", "pytest-xdist", "rich")
"""Those whose wording or layout stands in our outputs."""


class Places(NamedTuple):
    """Folders whose paths are masked."""

    project: Path
    home: Path
    repository: Path


def environment() -> str:
    """Return the versions that shape the outputs."""
    versions = {"python": ".".join(platform.python_version_tuple()[:2])}
    versions |= {name: version(name) for name in LIBRARIES}
    return "".join(f"{name} {number}\n" for name, number in versions.items())


MASKS = tuple(
    (re.compile(pattern, re.MULTILINE), mask)
    for pattern, mask in (
        (r"^platform .*$", "<platform>"),
        (r"\bLinux-[\w.-]+", "<platform>"),
        (r"^plugins: .*$", "<plugins>"),
        (r"^( *slowest calls:).*(\n +.*ms$)*", r"\1 <calls>"),
        (r"(?<!\d)\d{8}_\d{6}(?:_\d+)?(?!\d)", "<run id>"),  # the second of one second has a number of its own
        (r"(\"(\w+_ms|p50|p95|p99)\": ?)\d[\d.e-]*", r"\1<duration>"),
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?UTC|Z|[+-]\d\d:?\d\d)?", "<time>"),
        (r"\b\d+(\.\d+)?(e-\d+)? ?(ms|µs|s|seconds?|min)\b( \(\d+:\d\d:\d\d\))?", "<duration>"),
        (r"^=+ (.* in <duration>) =+$", r"=== \1 ==="),
        (r"\b\d\d-[A-Z][a-z]{2}-\d{4} at \d\d:\d\d:\d\d\b", "<time>"),
        (r"\b\d\d:\d\d:\d\d\b", "<duration>"),
        (r"\binstalled: [^;]*; not: [^;\"]*", "installed: <extras>"),
        (r"\b\d+(\.\d+)? ?(bytes|[kKMG]i?B)\b", "<size>"),
        # The widths of the columns and the sign of the change differ with the times.
        (r"^operation +mean before .*$", "<heads of operations>"),
        (r"^(\| )?((?:latency|ttft)\\?_ms) .*<duration>.*$", r"\1\2 <durations>"),
        (r"^((?:input|output)_tokens|cost_usd|requests) {2,}\S.*$", r"\1 <figures>"),
        (r"( · [a-z]+( [a-z]+)? <duration>)+$", " <phases>"),  # those below a millisecond are left out
        (r"\b(time|duration)=\"[\d.]+\"", r'\1="<duration>"'),
        (r"\bhostname=\"[^\"]*\"", 'hostname="<host>"'),
        (r"\b(127\.0\.0\.1|localhost):\d{4,5}\b", r"\1:<port>"),
        (r"\b0x[0-9a-f]{6,}\b", "<address>"),
        (r"(\"digest\": ?\")[0-9a-f]{64}", r"\1<hash>"),  # of records with their times, in a dump of SQL
    )
)

PROGRESS = re.compile(r"^[.FEsxX]{3,}(?= +\[ *\d+%\]$)", re.MULTILINE)
"""A line of pytest's letters: of workers, they come in any order."""
DURATION_KEYS = re.compile(r"_ms$|^(latency|p50|p95|p99|duration|seconds|elapsed)$|_seconds$")
HIDDEN_KEYS = {
    "timestamp": "<time>",
    "begun": "<time>",
    "bytes": "<size>",
    "checksum": "<hash>",
    "digest": "<hash>",
    "hardware": "<hardware>",
    "libraries": "<versions>",
}
"""Keys of JSON objects whose whole value is masked."""


def normalised(name: str, content: bytes | str, places: Places, is_digest: bool = False) -> str:
    """Return an output of this name in its readable form, masked; as a digest, little more than a hash of it."""
    if isinstance(content, bytes) and name.endswith((".sqlite", ".db")):
        return masked(_dump(content), places)
    text = content.decode("utf-8") if isinstance(content, bytes) else content
    if name.endswith(".html"):
        text = html_lines(text)
    elif name.endswith(".xml"):
        text = text.replace("><", ">\n<")
    elif name.endswith(".jsonl"):
        text = _records(text, _digest if is_digest else _record)
    elif text.startswith(("{", "[")):
        text = _pretty_if_json(text)
    text = masked(text, places)
    if is_digest and not name.endswith(".jsonl"):
        return f"{text.count(chr(10))} lines, {hashlib.sha256(text.encode()).hexdigest()[:12]}\n"
    return text


def masked(text: str, places: Places) -> str:
    """Mask what differs between two runs of the same tree."""
    for path, mask in (
        (places.project, "<project>"),
        (places.home, "<home>"),
        (Path(sys.prefix), "<python>"),
        (places.repository, "<repository>"),
    ):
        text = text.replace(str(path), mask)
    text = PROGRESS.sub(lambda found: "".join(sorted(found[0])), text)
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    today = datetime.now(UTC).date().isoformat()
    text = re.sub(rf"(?<![\w-])({today}|{today[5:]})(?![\w-])", "<today>", text)
    return "".join(line.rstrip() + "\n" for line in text.rstrip("\n").split("\n"))


def _pretty_if_json(text: str) -> str:
    try:
        return _pretty(json.loads(text))
    except ValueError:
        return text


def _pretty(value: Any) -> str:
    return json.dumps(_without_times(value), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _without_times(value: Any, is_duration: bool = False) -> Any:
    """Mask durations and what else differs by its key."""
    if isinstance(value, dict):
        return {
            key: HIDDEN_KEYS[key]
            if key in HIDDEN_KEYS and member is not None
            else _without_times(member, is_duration or bool(DURATION_KEYS.search(key)))
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [_without_times(member, is_duration) for member in value]
    return "<duration>" if is_duration and isinstance(value, float) else value


def _records(text: str, as_lines: Any) -> str:
    """Return JSON lines in the order of their cases; results are written in the order in which answers come."""
    lines = [line for line in text.split("\n") if line]
    try:
        records = [json.loads(line) for line in lines]
    except ValueError:
        return text
    if all("case_key" in record for record in records):
        records.sort(key=lambda record: (record["case_key"], record.get("trial", 0)))
    return "".join(as_lines(_without_times(record)) for record in records)


def _record(record: Any) -> str:
    """Return a record as a group of lines, one a key."""
    if not isinstance(record, dict):
        return json.dumps(record, ensure_ascii=False) + "\n"
    keys = sorted(record, key=lambda key: (key not in ("case_key", "id", "outcome"), key))
    lines = (
        f"  {key}: {json.dumps(record[key], sort_keys=True, ensure_ascii=False)}\n" for key in keys if key != "schema"
    )
    return "-\n" + "".join(lines)


def _digest(record: Any) -> str:
    """Return a record in one line: outcome, scores and a hash of all of it but its times."""
    scores = " ".join(f"{name}={score}" for name, score in sorted(record["scores"].items()))
    whole = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:12]
    return f"{record['case_key']} {record['outcome']} {whole} {scores}\n"


def _dump(content: bytes) -> str:
    """Return a database as SQL."""
    with sqlite3.connect(":memory:") as database:
        database.deserialize(content)
        return "".join(f"{line}\n" for line in database.iterdump())


class _Lines(HTMLParser):
    """Collect a line for each element: its tag, attributes and text."""

    HIDDEN = ("style", "script")

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.blocks: list[str] = []
        self._tags: list[str] = []
        self._attributes: dict[str, str | None] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tags.append(tag)
        self._attributes = dict(attrs)
        blob = self._attributes.pop("data-jsonblob", None)
        shown = "".join(
            f" {key}={value!r}" if value is not None else f" {key}" for key, value in self._attributes.items()
        )
        self.lines.append(f"<{tag}{shown}>")
        if blob:
            self.lines.append(_pretty_if_json(blob))

    def handle_data(self, data: str) -> None:
        tag = self._tags[-1] if self._tags else ""
        if tag == "script" and self._attributes.get("id") == "blocks":
            self.blocks = data.split()
        elif tag not in self.HIDDEN and data.strip():
            self.lines.append("  " + " ".join(data.split()))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._tags:
            while self._tags.pop() != tag:
                pass


def html_lines(text: str) -> str:
    """Return a page as lines: each tag with its attributes, each text, then the data blocks that scripts unpack."""
    parser = _Lines()
    parser.feed(text)
    for number, block in enumerate(parser.blocks):
        parser.lines += [f"block {number}", *_block_lines(zlib.decompress(base64.b64decode(block)).decode("utf-8"))]
    return "\n".join(parser.lines) + "\n"


def _block_lines(block: str) -> Iterator[str]:
    """Return the members of a data block; those that are HTML, as lines like the page's."""
    if block[:1] not in ("[", "{"):  # questions and answers: a case after each NUL
        yield from block.split("\0")
        return
    content = json.loads(block)
    if not isinstance(content, list) or not all(isinstance(member, str) for member in content):
        yield json.dumps(content, ensure_ascii=False)
        return
    for member in content:
        yield html_lines(member) if member.startswith("<") else member
