# `make demo` and `make test` set everything up on a fresh machine: a virtual environment in .venv, pinned by constraints.txt.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint docs clean

demo: .venv/demo
	$(BIN)/python examples/demo.py

test: .venv/test
	$(BIN)/python -m pytest

docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv build dist demo site

# Each needs other packages: the demo few of them.
.venv/demo: EXTRAS = files
.venv/test: EXTRAS = test
.venv/docs: EXTRAS = docs
.venv/demo .venv/test .venv/docs: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[$(EXTRAS)]"
	touch $@
