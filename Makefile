# Everything starts here. Nothing is assumed but Python 3.11 or newer and make: the first target that needs it
# creates .venv and installs the pinned, hashed requirements.
PYTHON ?= $(shell for p in python3.11 python3 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= auto
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help environment build ui nightly accept test screenshots lint bench lock clean

help:  ## say what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed and was not found; set PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps --only-binary :all: -r requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

environment: $(STAMP)  ## create .venv with the pinned requirements

build: $(STAMP)  ## build MODEL=<name>: all stages as Dagster assets, then its package and simulated cycles
	@test -n "$(MODEL)" || { echo "say what to build, for instance: make build MODEL=four-tiles" >&2; exit 2; }
	$(BIN)/tilewright build $(MODEL) --dagster $(ARGS)

ui: $(STAMP)  ## the pages of Dagster on http://127.0.0.1:3000, and what runs schedules: launch, look, rebuild one stage
	$(BIN)/tilewright ui $(ARGS)

nightly: $(STAMP)  ## what the schedule runs: build each representative model again and compare with the store
	$(BIN)/tilewright nightly $(ARGS)

accept: $(STAMP)  ## what users rely on, at full size: hours of simulation; checks and figures go to acceptance.json
	$(BIN)/tilewright accept --json acceptance.json $(ARGS)

test: $(STAMP) lint  ## lint, then run every test
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

screenshots: $(STAMP)  ## build a model in a browser (needs /usr/bin/chromium) and take the pictures of docs/images
	TILEWRIGHT_SCREENSHOTS=docs/images $(BIN)/python -m pytest tests/ui $(ARGS)

lint: $(STAMP)  ## ruff, strict types, layering
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-cache

bench: $(STAMP)  ## measure what has a budget (figures, never failures)
	$(BIN)/python -m pytest tests/bench --benchmark-only $(ARGS)

lock: $(STAMP)  ## pin the requirements of pyproject.toml again, with hashes
	$(PYTHON) -m venv --clear $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet pip-tools
	$(VENV)/lock/bin/pip-compile --quiet --generate-hashes --allow-unsafe --all-build-deps --strip-extras \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header --no-annotate \
		--extra test --output-file requirements.txt pyproject.toml
	rm -rf $(VENV)/lock

clean:  ## remove the environment and every cache inside this folder
	rm -rf $(VENV) build *.egg-info .pytest_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache .dagster
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
