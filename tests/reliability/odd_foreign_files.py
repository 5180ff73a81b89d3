"""Odd test sets of other tools as a table. The words of a row stand somewhere in what is said."""

from __future__ import annotations

import io
import string
import zipfile
from collections.abc import Iterable, Sequence

import openpyxl
from odd_files import OddRow

GOOD = b'[{"question": "Why?", "answer": "So"}]'


def a_workbook(rows: Iterable[Sequence[object]] = (("question", "answer"), ("Why?", "So")), second: str = "") -> bytes:
    book, file = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(list(row))
    if second:
        book.create_sheet(second).append(["question"])
    book.save(file)
    return file.getvalue()


def a_zip(**members: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        for name, text in members.items():
            packed.writestr(name, text)
    return file.getvalue()


def laughs(first: str, levels: int, form: str) -> bytes:
    """A YAML document whose aliases stand for 9 to the power of `levels` values."""
    lines = [f"- &a {first}"]
    for below, name in zip(string.ascii_letters[:levels], string.ascii_letters[1:], strict=False):
        lines.append(f"- &{name} " + form.format(", ".join([f"*{below}"] * 9)))
    return ("\n".join(lines) + "\n").encode()


ENTITIES = b"".join(b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(9))
FILES: list[OddRow] = [
    ("good.json", GOOD, 1, "1 case"),
    ("mark.json", b"\xef\xbb\xbf" + GOOD, 1, "1 case"),
    ("nan.json", b'[{"question": "Why?", "answer": "a", "score": NaN}]', 1, "1 case"),
    ("deep.json", b"[" * 100_000 + b"]" * 100_000, None, "nested too deep"),
    ("twice.json", b'[{"question": "Why?", "question": "How?"}]', None, "question stands twice in one object"),
    ("cut.json", GOOD[:-8], None, "1:31: not valid JSON"),
    ("empty.json", b"", None, "holds no case"),
    ("null.json", b"null", None, "holds no case"),
    ("number.json", b"7", None, "holds no case"),
    ("list.json", b"[]", None, "holds no case"),
    ("object.json", b"{}", None, "question is missing"),
    ("mixed.json", b'[{"question": "Why?"}, 7, null, "x"]', None, "row 4: is 'x' (a string), expected an object"),
    ("blank.json", b'[{"question": "", "answer": "So"}, {"question": "Why?"}]', None, "row 1: question is missing"),
    ("utf16.json", GOOD.decode().encode("utf-16"), None, "save it as UTF-8"),
    ("latin.json", b'[{"question": "Gr\xf6\xdfe?"}]', None, "1:18: byte 0xf6 at offset 17 is not UTF-8"),
    ("surrogate.json", b'[{"question": "\\ud800?"}]', None, "half of a surrogate pair"),
    ("digits.json", b'[{"question": "Why?", "n": ' + b"9" * 5000 + b"}]", None, "thousands of digits"),
    ("good.yaml", b"- question: Why?\n  answer: So\n", 1, "1 case"),
    ("words.yaml", b"- question: Where?\n  answer: no\n", 1, "gold 'no'"),
    ("octal.yaml", b"- question: n?\n  answer: 010\n", 1, "gold '010'"),
    ("alias.yaml", b"- &a {question: Why, answer: So}\n- {<<: *a, question: How}\n", 2, "2 cases"),
    ("laughs.yaml", laughs("[x, x]", 12, "[{}]"), None, "holds aliases for more than"),
    ("texts.yaml", laughs("x" * 100_000, 6, "[{}]"), None, "holds aliases for more than"),
    ("merges.yaml", laughs("{question: Why}", 12, "{{<<: [{}]}}"), None, "holds aliases for more than"),
    ("itself.yaml", b"&a [*a]\n", None, "an alias refers to what it is in"),
    (
        "twice.yaml",
        b"- question: Why?\n  answer: a\n  question: How?\n",
        None,
        "3:3: not valid YAML: 'question' stands twice",
    ),
    ("object.yaml", b"!!python/object/apply:os.system ['touch pwned']\n", None, "could not determine a constructor"),
    ("tag.yaml", b"- question: !mine x\n", None, "could not determine a constructor"),
    ("time.yaml", b"- question: !!timestamp x\n", None, "does not fit its tag"),
    ("whole.yaml", b"- question: !!int abc\n", None, "does not fit its tag"),
    ("digits.yaml", b"- question: Why?\n  answer: " + b"9" * 5000 + b"\n", None, "thousands of digits"),
    ("bytes.yaml", b"- !!binary aGVsbG8=: x\n", None, "does not fit its tag"),
    ("keys.yaml", b"? [a]\n: x\n", None, "found unhashable key"),
    ("deep.yaml", b"[" * 1000, None, "nested too deep"),
    ("tab.yaml", b"- question: Why?\n\tanswer: So\n", None, "2:1: not valid YAML"),
    ("two.yaml", b"- question: Why?\n---\n- question: How?\n", None, "another document"),
    ("nul.yaml", b"- question: W\0hy\n", None, "the character 0x0 at 13 is not allowed"),
    ("surrogate.yaml", b'- question: "\\ud800"\n', None, "half of a surrogate pair"),
    ("latin.yaml", b"- question: Gr\xf6\xdfe?\n", None, "byte 0xf6 at offset 14 is not UTF-8"),
    ("good.xlsx", a_workbook(), 1, "1 case"),
    ("second.xlsx", a_workbook(second="old"), 1, "only the sheet 'Sheet' was read, not 'old'"),
    ("empty.xlsx", a_workbook(rows=()), None, "holds no case"),
    ("header.xlsx", a_workbook(rows=(("question", "answer"),)), None, "holds no case"),
    ("blank.xlsx", a_workbook(rows=(("question", "answer"), (None, "So"))), None, "question is missing"),
    ("error.xlsx", a_workbook(rows=(("question", "answer"), ("Why?", "#REF!"))), 1, "gold none"),
    ("number.xlsx", a_workbook(rows=(("question", "answer"), ("n?", 3.0))), 1, "gold '3'"),
    ("columns.xlsx", a_workbook(rows=(("question", "answer", "answer"), ("n?", "a", "b"))), None, "stands twice"),
    ("cut.xlsx", a_workbook()[:500], None, "no workbook that can be read"),
    ("text.xlsx", b"question,answer\nWhy?,So\n", None, "no workbook that can be read"),
    ("other.xlsx", a_zip(**{"a.txt": "x"}), None, "no workbook that can be read"),
    ("old.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500, None, "is not UTF-8"),
    ("good.tsv", b"question\tanswer\nWhy?\tSo\n", 1, "1 case"),
    ("lines.txt", b"Why?\nHow?\n", None, "not valid JSON"),
    ("entity.xml", b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><top><title>&e;</title></top>', None, "xml"),
    (
        "laughs.xml",
        b'<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">' + ENTITIES + b"]><top><title>&j;</title></top>",
        None,
        "xml",
    ),
    ("semicolons.csv", b"question;answer\nWhy?;So\n", 1, "1 case"),
    ("utf16.csv", "question,answer\nWhy?,So\n".encode("utf-16"), 1, "was read as UTF-16"),
    ("latin.csv", b"question,answer\nGr\xf6\xdfe?,So\n", 1, "was read as Western European"),
    ("short.csv", b"question,answer\nWhy?\nHow?,x\n", 2, "none 1"),
    ("long.csv", b"question,answer\nWhy?,so,much\n", None, "the row has more cells than the header"),
    ("quote.csv", b'question,answer\n"Why?,So\nHow?,x\n', None, "not valid CSV"),
    ("empty.csv", b"", None, "holds no case"),
    ("header.csv", b"question,answer\n", None, "holds no case"),
    ("blank.csv", b"question,answer\n,x\nWhy?,So\n", None, "question is missing"),
    ("columns.csv", b"question,answer,answer\nWhy?,a,b\n", None, "column 'answer' stands twice in the header"),
    ("others.csv", b"question,answer,mine,mine\nWhy?,a,b,c\n", 1, "of columns with the same name (mine) only the last"),
    ("rows.csv", b"question,answer\nWhy?,So\nWhy?,So\n", 1, "1 row left out that repeats an earlier one"),
    ("ids.csv", b"id,question,answer\n1,Why?,So\n1,How?,x\n", None, "id already used by an earlier row"),
    ("joined.csv", b"question,answer\nWhy?,So\nquestion,answer\nHow?,x\n", None, "repeats the header"),
    ("formula.csv", b"question,answer\n=cmd|'/c calc'!A1,So\n", 1, "1 case"),
    ("packed.json", b"\x1f\x8b\x08\0\0\0\0\0", None, "UTF-16, UTF-32 or no text"),
]
