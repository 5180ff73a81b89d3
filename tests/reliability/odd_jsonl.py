"""Odd and malformed JSONL files as a table. The words of a row are the beginning of the first problem."""

from __future__ import annotations

import gzip
import json
from typing import Any

from odd_files import OddRow

FIRST = '{"id": "q1", "question": "Why?"}'
SECOND = '{"id": "q2", "question": "How?"}'


def lines(*texts: str, end: str = "\n") -> bytes:
    return (end.join(texts) + end).encode()


def a_case(**keys: Any) -> str:
    return json.dumps({"id": "q1", "question": "Why?"} | keys, ensure_ascii=False)


def more(keys: str) -> str:
    """A case with further keys, written as they are."""
    return f'{{"id": "q1", "question": "Why?", {keys}}}'


JSONL_FILES: list[OddRow] = [
    ("a byte order mark", b"\xef\xbb\xbf" + lines(FIRST), 1, ""),
    (
        "a byte order mark in the second line",
        lines(FIRST) + b"\xef\xbb\xbf" + lines(SECOND),
        1,
        "begins with a byte order mark inside of the file, as two",
    ),
    (
        "two byte order marks",
        b"\xef\xbb\xbf\xef\xbb\xbf" + lines(FIRST),
        0,
        "begins with a byte order mark inside of the file, as two",
    ),
    ("UTF-16 little", FIRST.encode("utf-16-le"), 0, "byte 0x7b at offset 0: UTF-16, UTF-32 or no text; save it"),
    ("UTF-16 big", FIRST.encode("utf-16-be"), 0, "byte 0x00 at offset 0: UTF-16, UTF-32 or no text; save it"),
    (
        "UTF-16 with a mark",
        (FIRST + "\n").encode("utf-16"),
        0,
        "byte 0xff at offset 0: UTF-16, UTF-32 or no text; save it",
    ),
    ("UTF-32", (FIRST + "\n").encode("utf-32"), 0, "byte 0xff at offset 0: UTF-16, UTF-32 or no text; save it"),
    ("UTF-7", lines(a_case(question="+ADw-b+AD4-")), 1, ""),
    (
        "Latin-1 in one line of three",
        lines(FIRST)
        + '{"id": "q2", "question": "Größe?"}\n'.encode("latin-1")
        + lines('{"id": "q3", "question": "Who?"}'),
        2,
        "byte 0xf6 at offset 61 is not UTF-8; save the file as UTF-8",
    ),
    (
        "Windows-1252 quotes",
        '{"id": "q1", "question": "“Why”?"}\n'.encode("cp1252"),
        0,
        "byte 0x93 at offset 26 is not UTF-8; save the file as UTF-8",
    ),
    (
        "EUC-KR",
        '{"id": "q1", "question": "왜 그런가?"}\n'.encode("euc-kr"),
        0,
        "byte 0xbf at offset 26 is not UTF-8; save the file as UTF-8",
    ),
    (
        "Shift JIS",
        '{"id": "q1", "question": "なぜ?"}\n'.encode("shift_jis"),
        0,
        "byte 0x82 at offset 26 is not UTF-8; save the file as UTF-8",
    ),
    ("GB18030", '{"id": "q1", "question": "为什么?"}\n'.encode("gb18030"), 1, ""),
    (
        "a cut UTF-8 character at the end",
        lines(FIRST) + '{"id": "q2", "question": "왜'.encode()[:-1],
        1,
        "byte 0xec at offset 59 is not UTF-8; save the file as UTF-8",
    ),
    (
        "an overlong character",
        b'{"id": "q1", "question": "\xc0\xaf?"}\n',
        0,
        "byte 0xc0 at offset 26 is not UTF-8; save the file as UTF-8",
    ),
    (
        "an encoded surrogate",
        b'{"id": "q1", "question": "\xed\xa0\x80?"}\n',
        0,
        "byte 0xed at offset 26 is not UTF-8; save the file as UTF-8",
    ),
    (
        "a lone surrogate as an escape",
        lines(a_case()[:-1].replace("Why?", "\\\\ud800").replace("\\\\", "\\") + "}"),
        0,
        "question holds half of a surrogate pair (\\ud800), which is",
    ),
    (
        "a surrogate pair the wrong way round",
        lines('{"id": "q1", "question": "\\ude00\\ud83d?"}'),
        0,
        "question holds half of a surrogate pair (\\ude00), which is",
    ),
    ("a NUL byte between lines", lines(FIRST) + b"\0\n" + lines(SECOND), 2, "not valid JSON: expecting value"),
    ("a NUL byte in a string", b'{"id": "q1", "question": "W\0hy?"}\n', 0, "not valid JSON: invalid control character"),
    ("NUL bytes at the end", lines(FIRST) + b"\0" * 100, 1, "not valid JSON: expecting value"),
    ("a zip", b"PK\x03\x04" + b"\0\1\2" * 50, 0, "not valid JSON: expecting value"),
    ("gzip", gzip.compress(lines(FIRST)), 0, "byte 0x1f at offset 0: UTF-16, UTF-32 or no text; save it"),
    ("a picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 0, "byte 0x89 at offset 0 is not UTF-8; save the file as UTF-8"),
    ("SQLite", b"SQLite format 3\0" + b"\0" * 50, 0, "not valid JSON: expecting value"),
    ("Parquet's magic", b"PAR1" + b"\x15\x04" * 30 + b"PAR1", 0, "not valid JSON: expecting value"),
    (
        "a pointer of Git LFS",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        0,
        "is a Git LFS pointer in place of the file; fetch the file",
    ),
    (
        "a merge conflict",
        lines(FIRST, "<<<<<<< HEAD", SECOND, "=======", '{"id": "q2", "question": "Who?"}', ">>>>>>> main"),
        1,
        "begins a merge conflict; resolve it, and remove the marks",
    ),
    (
        "an HTML page",
        lines("<!DOCTYPE html>", "<html><body>Not found</body></html>"),
        0,
        "not valid JSON: expecting value",
    ),
    (
        "an encrypted file",
        b"\x00\x01salted__" + bytes(range(128, 250)),
        0,
        "byte 0x00 at offset 0: UTF-16, UTF-32 or no text; save it",
    ),
    ("CRLF", lines(FIRST, SECOND, end="\r\n"), 2, ""),
    ("CR alone", lines(FIRST, SECOND, end="\r"), 0, "not valid JSON: extra data"),
    ("mixed line ends", (FIRST + "\r\n" + SECOND + "\n").encode(), 2, ""),
    ("no line end", FIRST.encode(), 1, ""),
    ("form feeds and vertical tabs", lines(FIRST) + b"\x0c\n\x0b\n" + lines(SECOND), 2, ""),
    ("a line separator within a string", lines(a_case(question="Wh\u2028y?")), 1, ""),
    ("a next line character within", lines(a_case(question="Wh\x85y?")), 1, ""),
    ("blank lines", lines("", "  ", "\t", FIRST, "", SECOND, ""), 2, ""),
    ("a line of 300 kB", lines(a_case(question="x" * 300_000), SECOND), 2, ""),
    (
        "a line of 5 MB",
        lines(a_case(question="x" * 5_000_000), SECOND),
        1,
        "the line is longer than 4,194,304 bytes; shorten it",
    ),
    (
        "an object over lines",
        json.dumps(json.loads(FIRST), indent=1).encode(),
        0,
        "is JSON over several lines; write one object a line (JSONL)",
    ),
    (
        "an array over lines",
        lines("[", FIRST + ",", SECOND, "]"),
        0,
        "is JSON over several lines; write one object a line (JSONL)",
    ),
    (
        "an array in one line",
        lines("[" + FIRST + "," + SECOND + "]"),
        0,
        "is a list, expected an object; write one object a line (JSONL)",
    ),
    ("objects without line ends", (FIRST + SECOND).encode(), 0, "not valid JSON: extra data"),
    ("objects with commas", lines(FIRST + ",", SECOND + ","), 0, "not valid JSON: extra data"),
    (
        "record separators of RFC 7464",
        b"\x1e" + FIRST.encode() + b"\n\x1e" + SECOND.encode() + b"\n",
        0,
        "not valid JSON: expecting value",
    ),
    ("comments", lines("// cases", FIRST, "# more", SECOND), 2, "not valid JSON: expecting value"),
    ("YAML", lines("- id: q1", "  question: Why?"), 0, "not valid JSON: expecting value"),
    ("TOML", lines("[[case]]", 'id = "q1"'), 0, "not valid JSON: expecting value"),
    ("XML", lines("<cases><case id='q1'/></cases>"), 0, "not valid JSON: expecting value"),
    (
        "Python's repr",
        lines("{'id': 'q1', 'question': 'Why?', 'answerable': True}"),
        0,
        "not valid JSON: expecting property name enclosed in double",
    ),
    ("JSON5", lines("{id: 'q1', question: 'Why?',}"), 0, "not valid JSON: expecting property name enclosed in double"),
    ("a trailing comma", lines(more('"tags": ["a",]')), 0, "not valid JSON: a comma before the closing bracket"),
    ("an event stream", lines("data: " + FIRST), 0, "not valid JSON: expecting value"),
    ("CSV in JSONL", lines("id,question", "q1,Why?"), 0, "not valid JSON: expecting value"),
    ("an id twice", lines(FIRST, FIRST), 1, "id already used at line 1; ids are unique in a file"),
    ("an id twice in other case", lines(FIRST, SECOND.replace("q2", "Q1")), 2, ""),
    ("an id in two Unicode forms", lines(FIRST.replace("q1", "caf\u00e9"), SECOND.replace("q2", "cafe\u0301")), 2, ""),
    ("an id of another type", lines(FIRST.replace('"q1"', "1")), 0, "id is 1 (a number), expected a string"),
    (
        'ids 1 and "1"',
        lines(FIRST.replace('"q1"', '"1"'), SECOND.replace('"q2"', "1")),
        1,
        "id is 1 (a number), expected a string",
    ),
    ("an empty id", lines(FIRST.replace("q1", "")), 0, "id is blank"),
    ("a blank id", lines(FIRST.replace("q1", "  ")), 0, "id is blank"),
    ("an id with line ends", lines(FIRST.replace("q1", "a\\nb")), 1, ""),
    ("an id with colons", lines(FIRST.replace("q1", "a::b[c]/d")), 1, ""),
    ("an id of 5,000 letters", lines(FIRST.replace("q1", "x" * 5000)), 1, ""),
    ("an id with an escape sequence", lines(FIRST.replace("q1", "\\u001b[31m")), 1, ""),
    ("an id with NUL", lines(FIRST.replace("q1", "\\u0000")), 1, ""),
    ("an id of dots", lines(FIRST.replace("q1", "../../etc")), 1, ""),
    ("no id", lines('{"question": "Why?"}'), 1, ""),
    (
        "no id, twice the same",
        lines('{"question": "Why?"}', '{"question": "Why?"}'),
        1,
        "an equal row without id stands at line 1; give them ids, or",
    ),
    ("null as id", lines(FIRST.replace('"q1"', "null")), 1, ""),
    ("a list as id", lines(FIRST.replace('"q1"', '["q1"]')), 0, "id is a list, expected a string"),
    ("a boolean as id", lines(FIRST.replace('"q1"', "true")), 0, "id is true, expected a string"),
    ("a key twice", lines(more('"id": "q9"')), 0, "id stands twice in one object, first at column 2; keep one"),
    (
        "a key twice with the same value",
        lines(more('"id": "q1"')),
        0,
        "id stands twice in one object, first at column 2; keep one",
    ),
    (
        "a key twice in gold",
        lines(more('"gold": {"answer": "a", "answer": "b"}')),
        0,
        "gold.answer stands twice in one object, first at column 43;",
    ),
    (
        "a key twice as an escape",
        lines(more('"\\u0069d": "q1"')),
        0,
        "id stands twice in one object, first at column 2; keep one",
    ),
    (
        "a mistyped key",
        lines(more('"answerble": false')),
        0,
        "answerble is not a known key; did you mean 'answerable'?",
    ),
    (
        "a key in capitals",
        lines(more('"Answerable": false')),
        0,
        "Answerable is not a known key; did you mean 'answerable'?",
    ),
    (
        "a key with a space",
        lines(more('"answerable ": false')),
        0,
        "'answerable ' is not a known key; did you mean 'answerable'?",
    ),
    (
        "a key with a zero-width space",
        lines(more('"answerable\\u200b": false')),
        0,
        "'answerable\\u200b' is not a known key; did you mean",
    ),
    (
        "a key in Cyrillic letters",
        lines(more('"\u0430nswerable": false')),
        0,
        "аnswerable is not a known key; did you mean 'answerable'?",
    ),
    ("an empty key", lines(more('"": 1')), 0, "'' is not a known key; put what is your own into 'metadata'"),
    ("__proto__", lines(more('"__proto__": {"x": 1}')), 0, "__proto__ is not a known key; put what is your own into"),
    (
        "a mistyped key in gold",
        lines(more('"gold": {"anser": "a"}')),
        0,
        "gold.anser is not a known key; did you mean 'answer'?",
    ),
    (
        "a mistyped key in an anchor",
        lines(more('"gold_supports": [{"rel_pth": "a.md"}]')),
        0,
        "gold_supports[0].rel_pth is not a known key; did you mean",
    ),
    (
        "a key of 100 kB",
        lines(more('"' + "k" * 100_000 + '": 1')),
        0,
        "'kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk",
    ),
    (
        "10,000 unknown keys",
        lines(more(", ".join(f'"k{i}": 1' for i in range(10_000)))),
        0,
        "k0 is not a known key; put what is your own into 'metadata'",
    ),
    ("100,000 open brackets", b"[" * 100_000 + b"\n", 0, "is nested too deep"),
    (
        "100,000 levels in metadata",
        lines(more('"metadata": ' + '{"a":' * 100_000 + "1" + "}" * 100_000)),
        0,
        "is nested too deep",
    ),
    (
        "65 levels in metadata",
        lines(more('"metadata": {"a": ' + "[" * 70 + "]" * 70 + "}")),
        0,
        "metadata is nested deeper than 64 levels",
    ),
    ("60 levels in metadata", lines(more('"metadata": {"a": ' + "[" * 58 + "]" * 58 + "}")), 1, ""),
    (
        "a list of 20,000 nulls",
        lines(more('"tags": [' + "null," * 20_000 + "null]")),
        0,
        "tags[0] is null, expected a string",
    ),
    ("200,000 tags", lines(more('"tags": [' + ",".join(f'"t{i}"' for i in range(200_000)) + "]")), 1, ""),
    ("NaN", lines(more('"metadata": {"n": NaN}')), 0, "metadata.n is NaN, which is not a JSON number; write null,"),
    (
        "Infinity",
        lines(more('"metadata": {"n": -Infinity}')),
        0,
        "metadata.n is -Infinity, which is not a JSON number; write",
    ),
    ("1e999", lines(more('"metadata": {"n": 1e999}')), 0, "metadata.n is 1e999, which is not a JSON number; write"),
    (
        "a number of 5,000 digits",
        lines(more('"metadata": {"n": ' + "9" * 5000 + "}")),
        0,
        "holds a number of thousands of digits; write it as a string",
    ),
    ("a number of 400 digits", lines(more('"metadata": {"n": ' + "9" * 400 + "}")), 1, ""),
    ("2^70", lines(more('"metadata": {"n": 1180591620717411303424}')), 1, ""),
    ("a leading zero", lines(more('"metadata": {"n": 01}')), 0, "not valid JSON: expecting ',' delimiter"),
    ("a plus sign", lines(more('"metadata": {"n": +1}')), 0, "not valid JSON: expecting value"),
    ("a hexadecimal number", lines(more('"metadata": {"n": 0x1F}')), 0, "not valid JSON: expecting ',' delimiter"),
    ("-0", lines(more('"metadata": {"n": -0.0}')), 1, ""),
    ("1e-999", lines(more('"metadata": {"n": 1e-999}')), 1, ""),
    ("a fullwidth digit", lines(more('"metadata": {"n": \uff11}')), 0, "not valid JSON: expecting value"),
    (
        "unanswerable with supports",
        lines(a_case(answerable=False, gold_supports=[{"rel_path": "a.md"}])),
        0,
        "gold_supports contradicts 'answerable': false; leave the",
    ),
    ("unanswerable with an answer", lines(a_case(answerable=False, gold={"answer": "x"})), 1, ""),
    (
        "two gold answers that differ",
        lines(a_case(reference="a", gold={"answer": "b"})),
        0,
        "gold.answer differs from reference, which says the same",
    ),
    ("question and query", lines(a_case(query="How?")), 0, "query differs from question, which says the same thing;"),
    ("nothing", b"", 0, "the file holds no case"),
    ("blank lines only", b" \n\n", 0, "the file holds no case"),
    ("a mark only", b"\xef\xbb\xbf", 0, "the file holds no case"),
    ("an empty object", b"{}\n", 0, "question is missing"),
    ("null", b"null\n", 0, "is null, expected an object"),
    ("a number", b"7\n", 0, "is 7 (a number), expected an object"),
    ("a string", b'"Why?"\n', 0, "is 'Why?' (a string), expected an object"),
    ("one brace", b"{\n", 0, "is JSON over several lines; write one object a line (JSONL)"),
    ("Excel's sep line", lines("sep=;", FIRST), 1, "not valid JSON: expecting value"),
]

WRONG_TYPES: dict[str, list[Any]] = {
    "question": [1, [], {}, " ", ""],
    "answerable": ["false", 0, []],
    "tags": ["a", {}, [1], [None], [[]]],
    "vaults": ["a", [1]],
    "folders": [1],
    "contexts": ["a", [1], [None], {}],
    "history": ["a", [{}], [{"role": "user"}], [{"role": 1, "text": "a"}]],
    "gold": [1, [], "a", {"answer": 1}, {"answer": ""}, {"answer": [""]}, {"key_facts": "a"}, {"kg_edges": ["a b"]},
             {"relevance": {"c": "1"}}, {"relevance": [1]}, {"doc_chunk_ids": [1]}],
    "gold_supports": ["a", [1], [{}], [{"rel_path": ""}], [{"rel_path": 1}], [{"rel_path": "a.md", "snippets": "x"}]],
    "required_support_groups": [[[0]], [[]], [0], [[0.5]], [[-1]], "0"],
    "recency_conflict_rule": ["cite_older", "cite_newer", 1],
    "category": [1, []],
    "difficulty": [{}],
    "metadata": [1, [], "x"],
    "requires_kg": ["yes", 1],
    "pass_rule": ["evry", -1, 1.5],
    "relevant_ids": ["a", [1]],
}  # fmt: skip
"""Values that a key cannot have; the problem must name the key."""
