# Every target sets up what it needs; `make help` lists them.

# The first of these that is new enough; make PYTHON=... chooses another.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV   := .venv/bin
# Processes that share the tests; two suit two cores.
WORKERS ?= 2
COMPILE := $(VENV)/uv pip compile --quiet --no-config --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-header

.DEFAULT_GOAL := help
.PHONY: help setup browser pooler run test check gates audit bench chaos mutants lock

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: ## the environment alone: .venv and front-end files; quick when nothing changed
	@$(or $(PYTHON),false) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed and was not found; install it, or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m setup.environment

browser: setup
	@$(VENV)/python -m setup.browser

pooler: setup
	@$(VENV)/python -m setup.pooler

run: setup ## the product with stand-ins and light traffic; ARGS="--port N" chooses its port
	@exec $(VENV)/python -m peers.run $(ARGS)

test: setup browser pooler gates ## everything that CI runs, browser tests included
	@$(VENV)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

check: gates audit ## format, lint, types, import rules, dependency audit

gates: setup
	@$(VENV)/python -m setup.gates

audit: setup
	@$(VENV)/python -m setup.audit

bench: setup ## the benchmarks: tables and JSON
	@$(VENV)/python -m tests.bench

chaos: setup ## the long chaos run, beside a plain retrying worker: tables and JSON
	@$(VENV)/python -m tests.chaos_run $(ARGS)

mutants: setup ## break the guards one by one and see that a test notices
	@$(VENV)/python -m tests.guards.mutants

lock: setup ## compile the lock files anew after a change of requirements*.in
	@$(COMPILE) requirements.in -o requirements.txt
	@$(COMPILE) requirements-dev.in -o requirements-dev.txt
	@$(COMPILE) requirements-front-end.in -o requirements-front-end.txt
