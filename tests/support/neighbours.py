"""Other plugins of pytest that runs are tried beside."""

from __future__ import annotations

from importlib.util import find_spec

ON_EACH = [
    ("pytest_jsonreport", ["-p", "pytest_jsonreport", "--json-report"]),
    ("pytest_reportlog", ["-p", "pytest_reportlog.plugin", "--report-log=log.jsonl"]),
    ("allure_pytest", ["-p", "allure_pytest.plugin", "--alluredir=allure"]),
    ("pytest_html", ["-p", "metadata", "-p", "html", "--html=page.html"]),
    ("pytest_sugar", ["-p", "pytest_sugar", "--force-sugar"]),
    ("pytest_instafail", ["-p", "pytest_instafail", "--instafail"]),
    ("pytest_rerunfailures", ["-p", "rerunfailures", "--reruns=1"]),
    ("pytest_repeat", ["-p", "repeat", "--count=1"]),
    ("pytest_retry", ["-p", "pytest_retry.retry_plugin", "--retries=1"]),
    ("pytest_timeout", ["-p", "timeout", "--timeout=100"]),
    ("pytest_randomly", ["-p", "randomly"]),
    ("pytest_cov", ["-p", "pytest_cov.plugin", "--cov=bot"]),
    ("pytest_split", ["-p", "pytest_split.plugin", "--splits=1", "--group=1"]),
    ("flakefinder", ["-p", "flakefinder"]),
]
"""Plugins by module, and how they are turned on; those not installed are skipped (see `nox -s neighbours`)."""

ALL = [
    argument
    for module, arguments in ON_EACH
    for argument in arguments
    if find_spec(module.partition(".")[0]) and module not in ("pytest_sugar", "pytest_instafail", "pytest_retry")
]
"""Those that live with each other: three want the terminal for themselves, or to run a test again."""
