# The two commands: make example, make test. Nothing but python3 and make is needed beforehand.
PYTHON ?= python3
VENV ?= .venv
SECONDS_LONG ?= 90

.PHONY: install example example-short test lint format benchmarks clean

install: $(VENV)/installed

$(VENV)/installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --upgrade pip
	$(VENV)/bin/python -m pip install --quiet --editable '.[plot,test]'
	touch $@

example: install
	$(VENV)/bin/python example_project/run.py --seconds $(SECONDS_LONG)

example-short: install
	$(VENV)/bin/python example_project/run.py --seconds 20

test: install
	$(VENV)/bin/python -m pytest

lint: install
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: install
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

benchmarks: install
	$(VENV)/bin/python benchmarks/crawl_once.py
	$(VENV)/bin/python benchmarks/solvers.py --quick

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
