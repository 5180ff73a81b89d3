"""Look at what is installed: known vulnerabilities, licences, and a bill of materials. Run by `nox -s supply_chain`.

    python .ci/supply_chain.py FOLDER       # FOLDER gets sbom.json and licences.md

A known vulnerability, or a licence of the GPL family among what users get, is exit code 1. Where the service that knows
vulnerabilities cannot be reached, nothing is said about them, and that is no failure.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
REQUIREMENTS = ROOT / "requirements" / "web.txt"
"""What a user gets with the extra `web`: audited and licensed. The development tools are in the other file."""
COPYLEFT = re.compile(r"\b(A|L)?GPL|General Public License", re.IGNORECASE)
LONGEST_S = 300


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    bill_of_materials(folder / "sbom.json")
    forbidden = licences(folder / "licences.md")
    vulnerable = audit()
    return 1 if forbidden or vulnerable else 0


def bill_of_materials(place: Path) -> None:
    """Write what is locked as CycloneDX."""
    _run("cyclonedx-py", "requirements", str(REQUIREMENTS), "--output-file", str(place), "--output-reproducible")
    components = json.loads(place.read_text(encoding="utf-8"))["components"]
    print(f"bill of materials: {len(components)} packages in {place}")


def licences(place: Path) -> bool:
    """Write the licences of the installed packages; return whether users would get one of the GPL family."""
    names = re.findall(r"^([\w.-]+)==", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    form = ("--from=mixed", "--with-urls", "--order=license", "--packages", *names)
    place.write_text(_run("pip-licenses", "--format=markdown", *form), encoding="utf-8")
    packages = json.loads(_run("pip-licenses", "--format=json", *form))
    found = [f"{one['Name']}: {one['License']}" for one in packages if COPYLEFT.search(one["License"])]
    print(f"licences: {len(packages)} packages in {place}; of the GPL family: {', '.join(found) or 'none'}")
    return bool(found)


def audit() -> bool:
    """Return whether a locked package has a known vulnerability; say of how many packages nothing is known."""
    form = ("--disable-pip", "--require-hashes", "--format", "json", "--timeout", "15")
    command = ["pip-audit", "--requirement", str(REQUIREMENTS), *form]
    try:
        ended = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=LONGEST_S)
        packages = json.loads(ended.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, json.JSONDecodeError):
        print("vulnerabilities: NOT AUDITED, since the service that knows them cannot be reached from here")
        return False
    unknown = [package for package in packages if "vulns" not in package]
    vulnerable = [package for package in packages if package.get("vulns")]
    audited = len(packages) - len(unknown)
    print(f"vulnerabilities: {len(vulnerable)} of {audited} audited packages")
    if unknown:
        print(f"vulnerabilities: {len(unknown)} packages NOT AUDITED: {unknown[0]['skip_reason']} …")
    for package in vulnerable:
        names = ", ".join(found["id"] for found in package["vulns"])
        print(f"  {package['name']} {package['version']}: {names}")
    return bool(vulnerable)


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
