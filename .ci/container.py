"""Run the steps of the Dockerfile where no container can be built, and try what came of them.

    sudo python .ci/container.py

Each stage is an overlay of this machine's own root, in which its steps run by chroot. The Python that runs this script
is put where base images have theirs. The result is tried as the user of the Dockerfile with a read-only root. Linux and
root only. It needs the network, as a build does.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = Path("/run/rageval-container")
"""A file system of its own: an overlay cannot lie on another one."""
USUAL_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
PREFIX = "usr/local"
"""Where base images have their Python."""


@dataclass
class Stage:
    """A stage of the Dockerfile, as its steps have left it."""

    root: Path
    folder: str = "/"
    user: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    entry_point: list[str] = field(default_factory=list)

    def command(self, words: list[str], user: int) -> list[str]:
        inside = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *words]
        changing = ["sh", "-c", 'cd "$0" && exec "$@"', self.folder, *inside]
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        passed = [f"{name}={value}" for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))]
        usual = [f"PATH={USUAL_PATH}", "HOME=/root", "LD_LIBRARY_PATH=/usr/local/lib"]
        return ["env", "-i", *usual, *passed, *variables, "chroot", str(self.root), *changing]

    def run(self, words: list[str], user: int) -> None:
        subprocess.run(self.command(words, user), check=True)


def main() -> int:
    if sys.platform != "linux" or os.geteuid() != 0:
        print("skipped: overlays and chroot need Linux and root")
        return 0
    if os.environ.get("RAGEVAL_CONTAINER") != "inside":
        # Mounts of a name space of its own are gone with the process.
        command = ["unshare", "--mount", sys.executable, __file__]
        code = subprocess.run(command, env=os.environ | {"RAGEVAL_CONTAINER": "inside"}).returncode
        PLACE.rmdir()
        return code
    PLACE.mkdir(exist_ok=True)
    _mount("tmpfs", "tmpfs", PLACE)
    stages = build(instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")))
    attempt(stages[-1])
    print("the container works: as another user than root, with a read-only root")
    return 0


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions with their arguments, without comments and line breaks."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    pairs = [line.partition(" ") for line in joined.splitlines()]
    return [(name, rest.strip()) for name, _, rest in pairs]


def build(steps: list[tuple[str, str]]) -> list[Stage]:
    """Run all steps; return the stages in their order."""
    stages: list[Stage] = []
    by_name: dict[str, Stage] = {}
    for name, rest in steps:
        print(f"{name} {rest}", flush=True)
        if name == "FROM":
            stages.append(Stage(_overlay(f"stage{len(stages)}")))
            by_name[rest.rpartition(" AS ")[2]] = stages[-1]
        else:
            take_step(stages[-1], name, rest, by_name)
    return stages


def take_step(stage: Stage, name: str, rest: str, others: dict[str, Stage]) -> None:
    if name == "RUN":
        stage.run(["sh", "-c", rest], stage.user)
    elif name == "WORKDIR":
        stage.folder = rest
        (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
    elif name == "COPY":
        copy(stage, shlex.split(rest), others)
    elif name == "ENV":
        for word in shlex.split(rest):
            variable, _, value = word.partition("=")
            stage.environment[variable] = value.replace("$PATH", USUAL_PATH)
    elif name == "USER":
        stage.user = int(rest)
    elif name == "ENTRYPOINT":
        stage.entry_point = re.findall(r'"([^"]+)"', rest)
    elif name not in ("LABEL", "EXPOSE", "CMD"):
        raise SystemExit(f"the Dockerfile has {name}, which this script does not know")


def copy(stage: Stage, words: list[str], others: dict[str, Stage]) -> None:
    source_root = ROOT
    if words[0].startswith("--from="):
        source_root = others[words.pop(0).removeprefix("--from=")].root
    *sources, target = words
    place = stage.root / stage.folder.lstrip("/") / target.lstrip("/") if target[0] != "/" else stage.root / target[1:]
    for source in sources:
        path = source_root / source.lstrip("/")
        to = place / path.name if len(sources) > 1 or target.endswith("/") else place
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, to, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, to)


def attempt(stage: Stage) -> None:
    """Try the last stage as a container with `--read-only --tmpfs /tmp` and a folder of the user's at /work."""
    _mount("tmpfs", "tmpfs", stage.root / "tmp")
    _mount("tmpfs", "tmpfs", stage.root / "work", f"uid={stage.user}")
    subprocess.run(["mount", "-o", "remount,ro", str(stage.root)], check=True)
    refused = subprocess.run(stage.command(["touch", "/opt/rageval/x"], 0), capture_output=True)
    assert refused.returncode != 0, "the root can be written to"
    for words in (["--version"], ["help", "gates"], ["demo", "run", "demo"], ["doctor", "--json"]):
        check = words[0] != "doctor"  # an empty folder is not ready
        command = stage.command([*stage.entry_point, *words], stage.user)
        subprocess.run(command, check=check, stdout=subprocess.DEVNULL)
    _attempt_web(stage)


def _attempt_web(stage: Stage) -> None:
    words = [
        *stage.entry_point,
        "web",
        "--host",
        "0.0.0.0",
        "--port",
        "8765",
        "--token",
        "a-token-of-32-characters-for-this",
    ]
    with subprocess.Popen(stage.command(words, stage.user)) as server:
        try:
            asking = [
                "curl",
                "--silent",
                "--output",
                "/dev/null",
                "--write-out",
                "%{http_code}",
                "http://127.0.0.1:8765/",
            ]
            for _ in range(60):
                code = subprocess.run(asking, capture_output=True, encoding="utf-8").stdout
                if code != "000":
                    break
                time.sleep(1)
        finally:
            server.terminate()
    assert code in ("200", "303", "401"), f"the web app answered {code}"


def _overlay(name: str) -> Path:
    upper, work, root = (PLACE / name / part for part in ("upper", "work", "root"))
    for path in (upper, work, root):
        path.mkdir(parents=True)
    _mount("overlay", "overlay", root, f"lowerdir=/,upperdir={upper},workdir={work}")
    _put_python(root / PREFIX)
    _mount("proc", "proc", root / "proc")
    subprocess.run(["mount", "--bind", "/dev", str(root / "dev")], check=True)
    return root


def _put_python(prefix: Path) -> None:
    """Copy the interpreter, which other users may not reach where it is; one of the system is linked."""
    own = Path(sys.base_prefix)
    if own != Path("/usr"):
        for folder in ("bin", "lib"):
            shutil.copytree(own / folder, prefix / folder, symlinks=True, dirs_exist_ok=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = prefix / "bin" / "python"
    python.unlink(missing_ok=True)
    python.symlink_to(version if own != Path("/usr") else f"/usr/bin/{version}")


def _mount(kind: str, device: str, place: Path, options: str = "rw") -> None:
    subprocess.run(["mount", "-t", kind, "-o", options, device, str(place)], check=True)


if __name__ == "__main__":
    sys.exit(main())
