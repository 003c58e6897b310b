# Two commands do everything on a fresh machine: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run serve test test-slow lint types imports check clean

run: $(VENV)/.installed ## install, fetch the default model, start a server, ask it something
	$(BIN)/phloem pull
	$(BIN)/python examples/quickstart.py

serve: $(VENV)/.installed ## serve the default model until Ctrl-C
	$(BIN)/phloem serve

test: $(VENV)/.installed-dev ## the quick tests
	$(BIN)/python -m pytest -m "not slow"

test-slow: $(VENV)/.installed-dev ## the tests on the real model, and long ones
	$(BIN)/python -m pytest -m slow

check: lint types imports

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	.ci/lint_tree.sh
	cd build/tree && ../../$(BIN)/mypy --config-file ../../pyproject.toml \
		--cache-dir ../../.mypy_cache -p phloem

imports: $(VENV)/.installed-dev
	.ci/lint_tree.sh
	cd build/tree && PYTHONPATH=. ../../$(BIN)/lint-imports --no-logo ../../pyproject.toml

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

NATIVE := $(wildcard kernels/native/src/*.* kernels/native/src/isa/*.*)

$(VENV)/.installed: pyproject.toml setup.py $(NATIVE) | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml setup.py $(NATIVE) | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@ $(VENV)/.installed

clean:
	rm -rf build $(VENV)
