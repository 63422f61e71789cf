# Every command that a developer, the demo and continuous integration use. `make` alone lists them.

PYTHON ?= python3
RUN := .venv/bin
UV := $(RUN)/uv
PACKAGES := $(patsubst %/__init__.py,%,$(wildcard schemas/__init__.py shared/__init__.py trigger/__init__.py \
	worker/__init__.py examples/__init__.py benchmarks/__init__.py tests/__init__.py))
LOCK := $(UV) pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make lock"
TESTS ?=
# Tests, demo and soak start processes by the hundred: from sources alone, each start costs more than twice the time.
unexport PYTHONDONTWRITEBYTECODE
# Most tests wait for servers and processes, so that two at once take little more than half the time.
PROCESSES ?= 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

.venv/uv:
	$(PYTHON) -m venv .venv
	$(RUN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	touch $@

.venv/ready: .venv/uv requirements/bootstrap.txt requirements/development.txt
	VIRTUAL_ENV="$(CURDIR)/.venv" $(UV) pip sync --quiet --compile-bytecode --require-hashes requirements/bootstrap.txt requirements/development.txt
	rm -f .venv/benchmark
	touch $@

.venv/benchmark: .venv/ready requirements/benchmark.txt
	VIRTUAL_ENV="$(CURDIR)/.venv" $(UV) pip install --quiet --compile-bytecode --require-hashes -r requirements/benchmark.txt
	touch $@

.PHONY: test
test: .venv/ready ## start the servers and run every test (TESTS="tests/unit -k cron" runs some)
	$(RUN)/python -m examples.servers install
	$(RUN)/python -m pytest --numprocesses $(PROCESSES) --dist worksteal $(TESTS)

.PHONY: lint
lint: .venv/ready ## check style, types and import rules
	$(RUN)/ruff check
	$(RUN)/ruff format --check
	$(RUN)/mypy $(PACKAGES)
	PYTHONPATH=. $(RUN)/lint-imports

.PHONY: format
format: .venv/ready ## format the code
	$(RUN)/ruff check --fix
	$(RUN)/ruff format

.PHONY: demo
demo: .venv/ready ## see a night of work, end to end, on this machine
	$(RUN)/python -m examples.billing.demo

.PHONY: bench
bench: .venv/benchmark ## measure, beside a peer
	$(RUN)/python -m benchmarks

.PHONY: soak
soak: .venv/ready ## disturb a fleet at random, and check it (SECONDS=600 SEED=4711)
	$(RUN)/python -m examples.servers install
	$(RUN)/python -m tests.soak --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED))

.PHONY: pictures
pictures: .venv/ready ## take the README's pictures again, during a demo's night
	$(RUN)/python -m examples.servers install
	$(RUN)/python -m examples.billing.pictures docs/pictures

.PHONY: schemas
schemas: .venv/ready ## write the published JSON Schemas after a contract has changed on purpose
	$(RUN)/python -m tests.support.publish_schemas

.PHONY: lock
lock: .venv/uv ## compile requirements/*.in into the lock files (UPGRADE=--upgrade renews all versions)
	cd requirements && for name in bootstrap runtime development benchmark; do \
		VIRTUAL_ENV="$(CURDIR)/.venv" ../$(LOCK) $(UPGRADE) $$name.in --output-file $$name.txt || exit 1; done

.PHONY: clean
clean: ## remove the environment and every cache
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
