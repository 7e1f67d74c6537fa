# Everything a developer or a pipeline does here. `make` lists it.
# A new machine needs Python 3.11 or newer, make and git; the rest is installed into .venv, node_modules and .build.

PYTHON ?= python3
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory

VENV := .venv/bin
DONE := .build/done
export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/node_modules/.bin:$(PATH)
# The build reports to nobody and asks nobody whether it is current.
export CDK_DISABLE_CLI_TELEMETRY := true
export JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION := true

# A suite is a folder of tests/. Cheap ones come first; a folder not named here runs after those that are.
SUITES_IN_ORDER := unit property architecture local contract conformance integration infrastructure recovery scenario
SUITES_FOUND := $(sort $(shell find tests -mindepth 2 -name 'test_*.py' 2>/dev/null | cut -d/ -f2))
SUITES := $(filter $(SUITES_FOUND),$(SUITES_IN_ORDER)) $(filter-out $(SUITES_IN_ORDER),$(SUITES_FOUND))

ALL_SUITES := $(sort $(SUITES_IN_ORDER) $(SUITES_FOUND))

# Further words for pytest: make test-unit PYTEST='-k refund -x'
PYTEST ?=
# One workflow instead of all: make crash WORKFLOW=refund
WORKFLOW ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  one suite alone: $(SUITES:%=test-%)"

# --- set-up: each step leaves a stamp and is done again only when what it read has changed ---------------------------

.PHONY: setup
setup: $(DONE)/python $(DONE)/node $(DONE)/dynamodb-local $(DONE)/cloud $(DONE)/host ## Install everything the rest needs

$(DONE)/python: requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "set-up stopped: Python 3.11 or newer is needed; name it with make PYTHON=/path/to/python3." >&2; exit 1; }
	@$(PYTHON) -m tooling.python_packages
	@mkdir -p $(DONE) && touch $@

$(DONE)/node: package-lock.json $(DONE)/python
	@$(VENV)/python -m tooling.node_packages
	@touch $@

$(DONE)/dynamodb-local: tooling/dynamodb_local.py $(DONE)/python
	@$(VENV)/python -m tooling.dynamodb_local
	@touch $@

$(DONE)/cloud $(DONE)/host: requirements/runtime.txt tooling/lambda_dependencies.py $(DONE)/python
	@$(VENV)/python -m tooling.lambda_dependencies $(@F)
	@touch $@

.PHONY: lock
lock: $(DONE)/python ## Resolve the dependencies again and write the locks
	@$(VENV)/python -m tooling.locks

# --- checks and tests -------------------------------------------------------------------------------------------------

.PHONY: check
check: setup ## Lint, format, types, import contracts, and a synth without findings
	ruff check .
	ruff format --check .
	mypy .
	lint-imports --no-cache
	cdk synth --strict --quiet --no-notices --context sandbox=true --output .build/cdk-check

.PHONY: format
format: setup ## Rewrite the sources as the formatter wants them, and what is drawn from them in the documentation
	ruff check --fix-only --quiet .
	ruff format .
	python -m tooling.documentation

# What is deployed mostly waits, so the cheap suites run beside it, one after the other; the crash points take every
# processor for themselves. Where make can, it prints the output of a suite in one piece.
SIDE_BY_SIDE := $(filter scenario,$(SUITES)) $(filter-out scenario local recovery,$(SUITES)) $(filter local,$(SUITES))
IN_ONE_PIECE := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

.PHONY: test
test: setup ## Run every suite
	@$(MAKE) --jobs=2 $(IN_ONE_PIECE) $(SIDE_BY_SIDE:%=test-%)
	@$(MAKE) test-recovery

.PHONY: $(ALL_SUITES:%=test-%)
$(ALL_SUITES:%=test-%): test-%: setup
	python -m pytest tests/$* $(if $(WORKFLOW),--workflow $(WORKFLOW)) $(PYTEST)

.PHONY: crash
crash: setup ## Crash one workflow (WORKFLOW=name) or all at every step, and see that nothing happens twice
	@python -m tests.recovery $(if $(WORKFLOW),--workflow $(WORKFLOW))

.PHONY: bench
bench: setup ## Count what one task costs and measure what a function weighs
	python -m benchmarks

# --- the product ------------------------------------------------------------------------------------------------------

.PHONY: synth
synth: setup ## Write the CloudFormation templates for the cloud into cdk.out
	cdk synth --quiet --no-notices

.PHONY: demo
demo: setup ## Deploy to a local AWS, walk through a refund, and clean up
	@python -m local demo

.PHONY: up
up: setup ## Start the local AWS with everything deployed and leave it running
	@python -m local up

.PHONY: status
status: $(DONE)/python ## Say whether the local AWS runs and how to reach it
	@python -m local status

.PHONY: down
down: $(DONE)/python ## End the local AWS
	@python -m local down

.PHONY: clean
clean: ## Remove everything that set-up and builds have made
	@if [ -x $(VENV)/python ] && [ -d .local ]; then $(VENV)/python -m local down --all; fi
	rm -rf .build .venv .local node_modules cdk.out* .mypy_cache .pytest_cache .ruff_cache .hypothesis
