# Everything from a bare Python 3.11: `make demo` shows the main job, `make test` runs all tests.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin

TESTS  ?= tests

.PHONY: demo test quick torture coverage lint bench clean

# Made anew when what it holds has changed; the stamp is written last, so that a broken set-up is not taken for a whole one.
$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.ready  ## the shipped cases against the embedded demo system, offline
	$(BIN)/python -m pytest evalcases -q

test: $(VENV)/.ready  ## all tests
	$(BIN)/python -m pytest tests -q -n auto --maxprocesses 4

quick: $(VENV)/.ready  ## the tests that start no process, or few
	$(BIN)/python -m pytest tests -q -n 2 --ignore tests/plugin --ignore tests/cli --ignore tests/test_docs.py

torture: $(VENV)/.ready  ## many rounds of crashes and stampedes: half an hour
	$(BIN)/python -m pytest tests -q -m torture

coverage: $(VENV)/.ready  ## one figure; TESTS names a part of the tests
	$(BIN)/coverage erase
	-$(BIN)/coverage run -m pytest $(TESTS) -q -n 2 # tests of what is imported fail: they see coverage itself
	$(BIN)/coverage combine --quiet
	@echo "coverage: $$($(BIN)/coverage report --format total) %"

lint: $(VENV)/.ready  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.ready  ## time and memory, measured here
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
