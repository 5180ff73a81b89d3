"""Make the pictures in docs/images from the demo: reports of a good run, a worse one and one of errors, and a comment.

    python docs/shots.py [FOLDER]

The shipped cases are run against the demo system, into a folder that is thrown away; the machine's own Chromium takes
the pictures. FOLDER gets them in every size and scheme, for looking at them; without it, docs/images gets those that
the documentation shows. A font with coloured emoji is needed, such as Debian's fonts-noto-color-emoji.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from comment_page import comment_page

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 120_000
SIZES = {"wide": (1280, 800), "comment": (900, 720), "phone": (390, 844)}
SCHEMES = ("light", "dark")
BROKEN = "def answer(question):\n    raise TimeoutError('no answer within 30 s')\n"
RUNS = {
    "first": ("--rageval-update-baseline",),
    "good": (),
    "worse": ("--rageval-k", "2"),
    "errors": ("--rageval-target", "broken:answer", "--rageval-ignore-invariants"),
}
"""By id the options of each run, the first one of which becomes the baseline."""


class Shot(NamedTuple):
    """A picture: of which run, of its comment or at which address in its report, in which size and scheme."""

    run: str
    address: str = ""
    size: str = "wide"
    scheme: str = "light"

    @property
    def name(self) -> str:
        if self.address == COMMENT:
            return f"comment-{self.run}.png"
        part = "case" if self.address else "page"
        return f"report-{self.run}-{part}-{self.size}-{self.scheme}.png"


CASE = "first failing case"
COMMENT = "comment on the pull request"
SHOWN = (
    Shot("good"),
    Shot("worse"),
    Shot("worse", CASE),
    Shot("worse", "", "phone", "dark"),
    Shot("errors"),
    Shot("worse", COMMENT, "comment"),
)
"""What the documentation shows."""


def main(folder: Path | None) -> None:
    shots = SHOWN if folder is None else every_shot()
    target = folder or IMAGES
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        pages = demo_pages(Path(place))
        for shot, picture in pictures(pages, shots):
            content = reduced(picture)
            if folder is None and len(content) > MOST_BYTES:
                raise SystemExit(f"{shot.name} has {len(content):,} bytes, more than {MOST_BYTES:,}")
            (target / shot.name).write_bytes(content)
            print(f"{target / shot.name}: {len(content):,} bytes")


def every_shot() -> Iterator[Shot]:
    for run, address in product(RUNS, ("", CASE)):
        if run != "first":
            yield from (Shot(run, address, size, scheme) for size, scheme in product(("wide", "phone"), SCHEMES))


def demo_pages(place: Path) -> dict[str, Path]:
    """Run the demo as often as there are runs to show; by id the report of each."""
    (place / "broken.py").write_text(BROKEN, encoding="utf-8")
    # Without a repository of git, whose branch and commit would stand in the pictures.
    environment = os.environ | {"PYTHONPATH": str(place), "GIT_DIR": str(place / "none")}
    pages = {}
    for run, options in RUNS.items():
        command = [sys.executable, "-m", "pytest", "evalcases", "-q", "-p", "no:cacheprovider", "--rageval-reports",
                   str(place / "reports"), "--rageval-run-id", run, *options]  # fmt: skip
        # Our own command, with nothing in it from elsewhere.
        subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)  # cases may fail
        pages[run] = place / "reports" / "runs" / run / "report.html"
        commenting = [sys.executable, "-m", "pytest_rageval", "comment", run, "--reports", str(place / "reports")]
        comment = subprocess.run(commenting, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
        comment_page(comment.stdout, pages[run].with_name("comment.html"))
    return pages


def pictures(pages: dict[str, Path], shots: Any) -> Iterator[tuple[Shot, bytes]]:
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next((path for name in names if (path := shutil.which(name))), None)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        for shot in shots:
            width, height = SIZES[shot.size]
            page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=shot.scheme)
            report = pages[shot.run]
            shown = report.with_name("comment.html") if shot.address == COMMENT else report
            page.goto(shown.as_uri())
            page.wait_for_selector("html[data-ready]", state="attached")
            if shot.address == CASE:
                page.evaluate("location.hash = document.querySelector('#list a').hash.replace(/\\/compare$/, '')")
                page.wait_for_selector("#case .case-bar")
            page.wait_for_timeout(200)
            yield shot, page.screenshot()
            page.close()
        chromium.close()


# ── PNG ───────────────────────────────────────────────────────────────────────────────────────────────────────


def reduced(png: bytes) -> bytes:
    """Reduce a picture to 256 colours, which suffice for most pages: a third of its size."""
    width, height, rows = decoded(png)
    pixels = [row[at : at + 3] for row in rows for at in range(0, len(row), len(row) // width)]
    palette = [colour for colour, _ in Counter(pixels).most_common(256)]
    numbers = {colour: number for number, colour in enumerate(palette)}
    for colour in set(pixels) - numbers.keys():
        nearest = min(palette, key=lambda other: sum((a - b) ** 2 for a, b in zip(colour, other, strict=True)))
        numbers[colour] = numbers[nearest]
    indexed = bytes(numbers[colour] for colour in pixels)
    lines = b"".join(b"\0" + indexed[at : at + width] for at in range(0, width * height, width))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return png[:8] + b"".join(_chunk(kind, content) for kind, content in chunks)


def decoded(png: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height and the rows of bytes of a PNG without interlacing, three or four bytes a pixel."""
    chunks = list(_chunks(png))
    width, height, _, colour_type = struct.unpack(">IIBB", chunks[0][1][:10])
    step = {2: 3, 6: 4}[colour_type]
    data = zlib.decompress(b"".join(content for kind, content in chunks if kind == b"IDAT"))
    rows: list[bytes] = []
    above = bytes(width * step)
    for at in range(0, height * (width * step + 1), width * step + 1):
        above = _unfiltered(data[at], data[at + 1 : at + 1 + width * step], above, step)
        rows.append(above)
    return width, height, rows


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _unfiltered(kind: int, line: bytes, above: bytes, step: int) -> bytes:
    """Restore a row of pixels from its filtered bytes; see section 9 of the PNG specification."""
    row = bytearray(line)
    for at in range(len(row)) if kind else ():
        left = row[at - step] if at >= step else 0
        corner = above[at - step] if at >= step else 0
        guess = (0, left, above[at], (left + above[at]) // 2, _paeth(left, above[at], corner))[kind]
        row[at] = (row[at] + guess) & 255
    return bytes(row)


def _paeth(left: int, up: int, corner: int) -> int:
    estimate = left + up - corner
    return min((left, up, corner), key=lambda value: abs(estimate - value))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
