"""How long do people need in the web app? Five stories in a real browser, step by step: clicks, keys and seconds.

    python benchmarks/web_stories.py [--shots FOLDER]

An empty project, the demo system, the machine's own Chromium. The user of the stories does not hesitate: seconds are
those that the app lets them wait. With `--shots`, each page is photographed at three widths.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from harness import empty_folder

WIDTHS = (1280, 390, 320)
PATIENCE_MS = 30_000
LABELLED = 100


class Step(NamedTuple):
    """One thing that somebody does, until they see that it is done."""

    story: str
    name: str
    clicks: int
    keys: int
    seconds: float


class Person:
    """Somebody who clicks and types at once what they look for."""

    def __init__(self, page: Any, shots: Path | None) -> None:
        self.page, self.shots = page, shots
        self.steps: list[Step] = []
        self.problems: list[str] = []
        self.story = ""
        self.clicks = self.keys = 0
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("response", self._look_at)

    def _look_at(self, answer: Any) -> None:
        if answer.status >= 500:
            self.problems.append(f"{answer.status} {answer.url}")

    def click(self, role: str, name: str) -> None:
        self.clicks += 1
        self.page.get_by_role(role, name=name, exact=True).first.click()

    def type(self, label: str, text: str) -> None:
        self.keys += len(text)
        self.page.get_by_label(label, exact=True).first.fill(text)

    def press(self, key: str) -> None:
        self.keys += 1
        self.page.keyboard.press(key)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what is done within, and take the pictures of the page that is there then."""
        self.clicks = self.keys = 0
        began = time.perf_counter()
        yield
        self.page.wait_for_load_state()
        self.steps.append(Step(self.story, name, self.clicks, self.keys, time.perf_counter() - began))
        if self.shots is not None:
            for width in WIDTHS:
                self.page.set_viewport_size({"width": width, "height": 800})
                is_wide = self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
                if is_wide:
                    self.problems.append(f"{self.page.url}: wider than {width} px")
                file = f"{len(self.steps):02}-{name.replace(' ', '-')}-{width}.png"
                self.page.screenshot(path=self.shots / file, full_page=True)
            self.page.set_viewport_size({"width": WIDTHS[0], "height": 800})


def first_result(person: Person) -> None:
    with person.step("open the app"):
        person.page.goto(person.page.url)
    with person.step("begin an agent"):
        person.click("link", "New agent")
    with person.step("name it, and save it"):
        person.type("Name", "Demo bot")
        person.click("button", "Save the agent")
        person.page.wait_for_url("**/agents/demo-bot")
    with person.step("take the demo's questions"):
        person.click("link", "Datasets")
        person.click("button", "Take the demo's questions")
        person.page.wait_for_url("**/datasets/demo-questions")
    run(person)


def run(person: Person, name: str = "") -> None:
    """Start a run from the page of an agent or a dataset, which it takes, and wait for its result."""
    with person.step(f"look at what a run takes{name}"):
        person.clicks += 1
        person.page.locator("main").get_by_role("link", name="New run", exact=True).first.click()
        person.page.wait_for_url("**/new-run*")
    with person.step(f"start it and wait for its result{name}"):
        person.click("button", "Start the run")
        person.page.wait_for_url("**/runs/*")  # the page of a job goes on to its run
        person.page.wait_for_selector("#case-list")


def upload(person: Person, file: Path) -> None:
    with person.step("choose a file"):
        person.click("link", "Datasets")
        person.click("link", "Import a dataset")
        person.clicks += 1
        person.page.set_input_files("#cases", str(file))
    with person.step("look at what is in it"):
        person.click("button", "Look at it")
        person.page.wait_for_url("**/datasets/uploads/*")
    with person.step("save it"):
        person.click("button", "Save as a dataset")
        person.page.wait_for_url(f"**/datasets/{file.stem}")


def compare(person: Person) -> None:
    with person.step("make a second agent"):
        person.click("link", "Agents")
        person.click("link", "New agent")
        person.type("Name", "Other bot")
        person.click("button", "Save the agent")
        person.page.wait_for_url("**/agents/other-bot")
    run(person, " (other)")
    with person.step("compare the two runs"):
        person.clicks += 1
        person.page.get_by_role("link", name="compare with Demo bot").click()
        person.page.wait_for_url("**/compare*")


def label(person: Person, slug: str) -> None:
    person.page.goto(person.page.url.partition("/compare")[0] + f"/datasets/{slug}")
    with person.step("begin to label"):
        person.click("button", "Label")
        person.page.wait_for_selector("#label:not([hx-trigger]) .chunks a")
    with person.step(f"label {LABELLED} rows"):
        for number in range(1, LABELLED + 1):
            person.press("Space")
            person.press("Enter")
            if number < LABELLED:
                person.page.wait_for_selector(
                    f"#label:not([hx-trigger]):has-text('{number + 1} of {LABELLED}') .chunks a"
                )


def why_it_failed(person: Person, address: str) -> None:
    with person.step("open the list of runs"):
        person.page.goto(address)
        person.click("link", "Runs")
    with person.step("open the run"):
        person.clicks += 1
        person.page.locator("#run-list td.id a").first.click()
        person.page.wait_for_selector("#case-list")
    with person.step("open its worst case: question, answer, reason"):
        person.clicks += 1
        person.page.locator("#case-list th.id a").first.click()
        person.page.wait_for_url("**/cases/**")


def stories(person: Person, address: str, folder: Path) -> None:
    person.page.goto(address)
    many = folder / "many.csv"
    lines = (
        f"q{number},Which products does Laneige have in the catalogue of week {number}?,some\n"
        for number in range(LABELLED)
    )
    many.write_text("id,question,reference\n" + "".join(lines), encoding="utf-8")
    for name, tell in (
        ("first agent to first result", lambda: first_result(person)),
        ("upload of a dataset", lambda: upload(person, many)),
        ("two agents compared", lambda: compare(person)),
        (f"{LABELLED} rows labelled", lambda: label(person, "many")),
        ("why a run failed", lambda: why_it_failed(person, address)),
    ):
        person.story = name
        tell()


@contextmanager
def app(folder: Path) -> Iterator[str]:
    """The address of the app over an empty project, in a process of its own."""
    command = [sys.executable, "-m", "pytest_rageval", "web", "--port", "0", "--no-token"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[2]
        finally:
            process.terminate()


def told(person: Person) -> None:
    """Print a table of the steps, then a line a story."""
    print("| story | step | clicks | keys | seconds |\n| --- | --- | --: | --: | --: |")
    for step in person.steps:
        print(f"| {step.story} | {step.name} | {step.clicks} | {step.keys} | {step.seconds:.1f} |")
    for name in dict.fromkeys(step.story for step in person.steps):
        own = [step for step in person.steps if step.story == name]
        clicks, keys, seconds = (sum(each) for each in zip(*(step[2:] for step in own), strict=True))
        print(f"| **{name}** | {len(own)} steps | {clicks} | {keys} | {seconds:.1f} |")
    for problem in dict.fromkeys(person.problems):
        print("problem:", problem)


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--shots", type=Path, help="a folder for pictures of each page")
    shots = parser.parse_args().shots
    if shots is not None:
        shots.mkdir(parents=True, exist_ok=True)
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    with empty_folder() as folder, app(folder) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        person = Person(browser.new_page(viewport={"width": WIDTHS[0], "height": 800}), shots)
        try:
            stories(person, address, folder)
        except BaseException:
            person.problems.append(f"ended at {person.page.url}: {person.page.inner_text('main')[:500]}")
            raise
        finally:
            told(person)
            browser.close()


if __name__ == "__main__":
    main()
