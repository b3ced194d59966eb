# Every target sets itself up: a fresh machine needs Python 3.11+ with venv, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install demo reproduce test test-browser lint bench strangers mutate dist clean

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("boundwatch needs Python 3.11 or newer: make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable . --group dev
	touch $@

demo: install
	$(BIN)/boundwatch demo

reproduce: install
	$(BIN)/python -m reproduction all -o reproduced

test: install
	$(BIN)/pytest -n 2 --dist worksteal # neighbors share what is slow to make

test-browser: install # needs Debian's chromium
	$(BIN)/pytest -m browser

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_size.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site

bench: install
	$(BIN)/pip install --quiet --constraint constraints.txt --group bench
	$(BIN)/python -m benchmarks

strangers: install # tasks that others wrote, watched by everybody's detectors
	$(BIN)/pip install --quiet --constraint constraints.txt --group bench
	$(BIN)/pip install --quiet --constraint constraints.txt --no-deps --group bench-alone
	$(BIN)/python -m benchmarks.strangers -o strangers

mutate: install # changes the code that guarantees rest on, and sees whether a test notices; takes an hour
	$(BIN)/python tools/mutate.py

dist: install
	$(BIN)/python tools/check_dist.py dist

clean:
	rm -rf $(VENV) site demo reproduced strangers dist
