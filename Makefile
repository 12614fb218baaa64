# Two commands do everything: `make up` and `make test`. They need Python 3.11 or newer, and git.
PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt
HOME_DIR ?= home

.PHONY: docs up test test-long test-layers test-hosts test-adapters test-wheel bench reference pictures snapshots shape lint style types tests clean help

help:          ## what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

up: $(VENV)/.installed  ## a home in ./home (made if missing; HOME_DIR=~/aria for another place, PORT=8080 for another port), served until Ctrl-C
	@echo "In another terminal, source $(VENV)/bin/activate makes anima a command there."
	$(VENV)/bin/anima up $(HOME_DIR) --name Aria $(if $(PORT),--port $(PORT))

# On a busy machine a browser or a killed process may be slower than a test waits for. A few that failed beside all the
# others are run once more, one after another: what fails then too is broken. More than ten are broken at once.
# Hundreds of programs are started; each would compile us anew where the machine keeps no bytecode.
TESTS := MAKEFLAGS= PYTHONDONTWRITEBYTECODE= $(VENV)/bin/python -m pytest -m "not long and not hosts"
test: $(VENV)/.test-installed style  ## lint, types and all tests
	@$(MAKE) --no-print-directory --jobs 2 types tests

tests: $(VENV)/.test-installed
	$(TESTS) --numprocesses auto --dist loadfile --no-loadscope-reorder --maxfail 11 || { \
	  test $$? -eq 1 && echo "Once more, one after another, what failed beside the others:" && \
	  $(TESTS) --last-failed --last-failed-no-failures none --verbose; }

test-long: $(VENV)/.test-installed  ## the long suites: PART=kills, power, crowd, conversations, spoken, examples, blind, trust, page or docs; SEED= and FROM= go on
	$(VENV)/bin/python tests/long.py $(PART) --seed "$(SEED)" --start "$(FROM)"

# Homes of the suites of folders stand in the database then (tests/databased.py); what only a folder has is named, with the
# reason, in tests/folders_only.txt. FOLDERS=run runs those too, and says which of them pass.
SUITES := sessions gate dream forget upkeep memory/test_reviewing.py backup/test_moving.py backup/test_snapshots.py
test-postgres: $(VENV)/.test-installed  ## everything about homes in PostgreSQL, also what takes long
	$(VENV)/bin/python -m pytest -rs $(addprefix tests/store/test_,contract.py postgres.py tenants.py credentials.py lives.py rows_damaged.py) tests/web/test_fleet.py tests/web/test_fleet_attacked.py tests/search/test_index.py
	$(VENV)/bin/python -m pytest -rs tests/store/test_outages.py tests/store/test_secrets_apart.py tests/web/test_fleet_canaries.py
	STORE=postgres $(VENV)/bin/python -m pytest -m "not long" $(addprefix tests/,$(SUITES))

test-layers: $(VENV)/.test-installed  ## two layers and one file: contract, state machine, faults, canaries, also what takes long
	-$(PIP) --editable '.[libsql]'
	$(VENV)/bin/python -m pytest -rs tests/store/test_libsql.py tests/backup/test_migrate.py tests/store/test_contract.py tests/store/test_overlay.py tests/store/test_one_file.py tests/store/test_lives.py tests/search/test_index.py -k "not Postgres"

test-wheel: $(VENV)/.test-installed  ## the built wheel in an empty environment, with every Python there is, by pipx and by uvx
	$(VENV)/bin/python tests/wheel.py --ways

test-hosts: $(VENV)/.test-installed  ## the real Claude Code, Codex and hermes, connected, against a model server on loopback
	$(VENV)/bin/python tests/hosts.py

test-adapters: $(VENV)/.test-installed  ## the adapters with the real libraries, each in an environment of its own; ONLY= picks one
	$(VENV)/bin/python tests/adapters.py

lint: style types

style: $(VENV)/.test-installed
	$(VENV)/bin/ruff check src tests benchmarks docs/pictures.py docs/reference.py
	$(VENV)/bin/ruff format --check src tests benchmarks docs/pictures.py docs/reference.py

# Twenty seconds of one core: beside the tests, which go first.
types: $(VENV)/.test-installed
	nice $(VENV)/bin/mypy

bench: $(VENV)/.test-installed  ## every benchmark, one after the other
	@for file in benchmarks/*.py; do echo "== $$file"; $(VENV)/bin/python $$file || exit 1; done

docs: $(VENV)/.docs-installed  ## the documentation as a site that needs no network, into build/site
	$(VENV)/bin/zensical build --strict
	@echo "open build/site/index.html"

reference: $(VENV)/.test-installed  ## the page of every public name, from docstrings
	$(VENV)/bin/python docs/reference.py

pictures: $(VENV)/.test-installed  ## the pictures of the pages, into docs/pictures
	$(VENV)/bin/python docs/pictures.py

snapshots: $(VENV)/.test-installed  ## prompts, help and API as they are now, into tests/golden
	SNAPSHOTS=write $(VENV)/bin/python -m pytest tests/test_golden.py tests/layout/test_dialects.py -k what_it_was

shape: $(VENV)/.test-installed  ## how large the source is and how it hangs together, beside what it should be
	@$(VENV)/bin/python tests/shape.py

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("anima needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing into $(VENV), which takes a minute or two the first time …"
	$(PIP) --editable '.[serve,chat]'
	touch $@

$(VENV)/.test-installed: $(VENV)/.installed
	$(PIP) --no-compile --editable '.[test]'
	$(VENV)/bin/python tests/chromium.py
	touch $@

$(VENV)/.docs-installed: $(VENV)/.installed
	$(PIP) --editable '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis
