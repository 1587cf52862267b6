# The two commands: make example, make test. Nothing but python3 and make is needed beforehand.
PYTHON ?= python3
VENV ?= .venv
SECONDS_LONG ?= 90
# Of the example: pages that change on their own (independent), or sections of sites whose pages change together (news); there
# NEIGHBOURHOODS=False leaves each page to its own history, without neighbourhoods and feeds.
WORLD ?= independent
NEIGHBOURHOODS ?= True
# Tests at a time: two to a processor, as crawls wait more than they work. Those of a file share what they set up.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(8, 2 * os.cpu_count()))')
PARALLEL = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# For `make evidence`: git repositories to test policies on, and where tables and pictures go.
REPOSITORIES ?=
EVIDENCE ?= build/evidence

# Hundreds of processes import the same modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install example example-short test test-oldest lint format benchmarks evidence clean

install: $(VENV)/installed

$(VENV)/installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --upgrade pip
	$(VENV)/bin/python -m pip install --quiet --editable '.[plot,test]'
	touch $@

example: install
	$(VENV)/bin/python example_project/run.py --seconds $(SECONDS_LONG) --world $(WORLD) $(if $(filter False,$(NEIGHBOURHOODS)),--alone)

example-short: install
	$(VENV)/bin/python example_project/run.py --seconds 20

# What holds a real crawl to the clock comes last, when the machine is free: it waits far more than it works.
test: install
	$(VENV)/bin/python -m pytest $(PARALLEL) -m 'not timing'
	$(VENV)/bin/python -m pytest -n 3 --dist loadfile -m timing $$(grep -rl --include='test_*.py' 'pytest\.mark\.timing' tests)

# The oldest Scrapy that setup.cfg admits, with what pip chooses beside it, and what these tests need.
.venv-oldest/installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --no-compile --editable . 'scrapy==2.13.4' pytest pytest-xdist hypothesis
	touch $@

test-oldest: .venv-oldest/installed
	.venv-oldest/bin/python -m pytest $(PARALLEL) tests/integrations/test_scrapy_endings.py tests/integrations/test_scrapy_pages.py

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

# Every table and figure of the documentation about learning, at full size: hours. `make test` has small versions.
# With REPOSITORIES="path ..." the tables on recorded changes alone: minutes.
evidence: install
	EVIDENCE="$(EVIDENCE)" REPOSITORIES="$(REPOSITORIES)" benchmarks/evidence.sh $(VENV)/bin

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
