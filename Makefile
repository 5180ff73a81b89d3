# Everything from a bare Python 3.11 or later: `make demo` shows the main job, `make test` runs all tests.
# The first that is at least 3.11; `python3.11 --version` may fail where a version manager only has a name for it.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

TESTS  ?= tests

# Where it is set, each of the processes that tests start compiles 130 modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test quick torture coverage lint docs bench shots lock clean

help:  ## what can be made
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile

# Made again when pyproject.toml has changed. A stamp is written last, so that a broken set-up is not taken for a whole one.
$(VENV)/.core: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed: install it, or name one with make PYTHON=..."; exit 1; }
	@echo "1/2  $(VENV): an environment of its own"
	@$(PYTHON) -m venv $(VENV)
	@echo "2/2  the package and what it needs, some 60 MB (make test installs the rest)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.ready: $(VENV)/.core requirements/dev.txt
	@echo "     what tests and checks need, some 900 MB"
	@$(PIP) --upgrade pip
	@$(PIP) --require-hashes --requirement requirements/dev.txt
	@$(PIP) --no-deps --editable .
	@touch $@

demo: $(VENV)/.core  ## the shipped cases against the embedded demo system, offline
	$(BIN)/python -m pytest evalcases -q
	@echo "report: $$(ls -td reports/runs/*/report.html | head -n 1)"

test: $(VENV)/.ready  ## all tests
	$(BIN)/python -m pytest tests -q -n 4 --dist worksteal

quick: $(VENV)/.ready  ## the tests that start no process: a minute
	$(BIN)/python -m pytest tests -q --quick

torture: $(VENV)/.ready  ## all tests, in any order, with all rounds of chance, crashes, stampedes and mutants: most of an hour
	THOROUGH=1 $(BIN)/python -m pytest tests -q -m '' -n 2 --dist worksteal -p pytest_randomly --timeout 3600 -o faulthandler_timeout=3700 --reliability-table reports/reliability.md

coverage: $(VENV)/.ready  ## one figure; TESTS names a part of the tests
	$(BIN)/coverage erase
	-$(BIN)/coverage run -m pytest $(TESTS) -q -n 2 # tests of what is imported fail: they see coverage itself
	$(BIN)/coverage combine --quiet
	@echo "coverage: $$($(BIN)/coverage report --format total) %"

lint: $(VENV)/.ready  ## style, types, spelling, and words that the documentation avoids
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell pytest_rageval docs *.md
	$(BIN)/python docs/check_words.py --check

docs: $(VENV)/.ready  ## the site in site/; a link that leads nowhere is an error
	$(BIN)/python docs/make_site.py

bench: $(VENV)/.ready  ## time and memory beside other tools, written into docs/benchmarks.md; QUICK=1 prints a quick look
	$(BIN)/python benchmarks/run.py $(if $(QUICK),--quick --print,--write) $(if $(PEERS),--peers $(PEERS))

shots: $(VENV)/.ready  ## the pictures of the report in docs/images, from the demo
	$(BIN)/python docs/shots.py

lock: $(VENV)/.core  ## requirements/ again, after a change of the dependencies in pyproject.toml
	$(PIP) uv
	$(BIN)/python .ci/lock.py

clean:
	rm -rf $(VENV) build site .mypy_cache .pytest_cache .ruff_cache .hypothesis
