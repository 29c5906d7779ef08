# Heapwatch: every target is `heapwatch VERB` or one tool, run in .heapwatch/venv.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
export HEAPWATCH_STATE ?= $(CURDIR)/.heapwatch
# a clone has what a wheel has not: the example trainer and the containers
export HEAPWATCH_CHECKOUT := $(CURDIR)
MODE ?= auto
# Where it is set, each of the hundreds of processes that the tests start compiles torch anew.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(HEAPWATCH_STATE)/venv/bin
BOOTSTRAP := PYTHONPATH=exporters:stack $(PYTHON) -m heapwatch_stack.bootstrap "$(HEAPWATCH_STATE)/venv"
RUN := @"$(BIN)/python" -m
# with what `tools` fetched, for programs that look on PATH
WITH_TOOLS := @PATH="$(HEAPWATCH_STATE)/bin:$$PATH"
# Every target; no file is made.
.PHONY: $(shell awk -F: '/^[a-z-]+:/ {print $$1}' $(firstword $(MAKEFILE_LIST)))

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  \033[1m%-14s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\n  MODE=native|docker   PROFILE=default|aggressive   PYTHON=python3.11   HEAPWATCH_*_PORT, HEAPWATCH_STATE: README.md\n'

venv:
	@$(BOOTSTRAP) requirements/$(if $(filter docker,$(MODE)),stack,run).txt
dev:
	@$(BOOTSTRAP) requirements/dev.txt
tools: dev
	$(RUN) heapwatch tools > /dev/null
up: venv ## Start the stack, or apply changes to a running one; returns when all is healthy
	$(RUN) heapwatch up --mode $(MODE)
down: venv ## Stop the stack; recorded data stays
	$(RUN) heapwatch down --mode $(MODE)
status: venv ## Show each service, its address and its state
	$(RUN) heapwatch status --mode $(MODE)
logs: venv ## Show the logs (SERVICE=name LAST=40 FOLLOW=1)
	$(RUN) heapwatch logs --mode $(MODE) $(if $(SERVICE),--service $(SERVICE)) --lines $(or $(LAST),40) $(if $(FOLLOW),--follow)
restart: venv ## Restart one service (SERVICE=name)
	$(RUN) heapwatch restart --mode $(MODE) $(if $(SERVICE),--service $(SERVICE))
demo: venv ## Make a trainer leak and follow alert and cleanup; exit 0 only if it worked
	$(RUN) heapwatch demo --mode $(MODE)
clean: venv ## Stop the stack and remove everything that it wrote
	$(RUN) heapwatch clean --mode $(MODE)

# More workers than two cores: half of the time of a test is spent waiting for a server.
test: tools ## Install what the tests need and run all of them (ARGS="tests/stack -k port")
	$(RUN) pytest --numprocesses 5 --dist loadfile --no-loadscope-reorder --durations 25 --durations-min 5 $(ARGS)
test-fast: tools ## Run the tests that are not marked slow (ARGS=tests/exporters/measure for some of them)
	$(RUN) pytest -q --numprocesses 2 --dist loadfile --durations 10 --durations-min 2 -m "not slow" $(ARGS)
test-thorough: dev ## Check with 10,000 random programs that watching runs none of their code and keeps nothing alive (ARGS=path)
	$(RUN) pytest -q --timeout 0 --hypothesis-profile thorough $(or $(ARGS),tests/exporters/explain/test_inventory_safety.py)
# What is written by a program, which says with --check whether the file is right.
GENERATED := heapwatch_dashboards docs.metrics_reference docs.limits docs.reads
lint: dev ## Check style, types and generated files
	@"$(BIN)/ruff" check . && "$(BIN)/ruff" format --check . && "$(BIN)/mypy"
	@for module in $(GENERATED) benchmarks.cases.page; do "$(BIN)/python" -m $$module --check || exit 1; done
generate: dev ## Write the dashboards and the generated parts of the docs
	@for module in $(GENERATED) docs.systems.samples tests.documents.tables; do "$(BIN)/python" -m $$module || exit 1; done
deploy: dev ## Write a Helm chart into build/deploy/chart
	$(RUN) deploy.generator $(ARGS)
documents-test: tools ## Try every row of the tables in docs/systems on the examples (ARGS="-k walker")
	$(RUN) pytest -q --numprocesses 5 --dist loadscope tests/documents $(ARGS)
lock: ## Pin the newest versions that pyproject.toml allows (requirements/*.txt)
	@$(call own,lock,uv)
	@PATH="$(HEAPWATCH_STATE)/lock/bin:$$PATH" requirements/lock.sh
release-tools:
	@$(call own,release,--require-hashes -r requirements/release.txt)
light: dev release-tools ## Test the trainer's library without optional packages, on every installed Python
	@.ci/light
release-check: release-tools ## Build the distributions and check them for a release
	@.ci/release
test-harmless: dev ## Run programs that change everything while all of it is read (ARGS="--only gradients --seconds 300", "--only entering")
	$(RUN) tests.harmless $(ARGS)
test-containers: dev ## Test the stack in containers: demonstration, killed services, changed settings (needs a Docker engine)
	$(RUN) tests.containers

# Packages for one purpose, in an environment of their own.
own = test -x "$(HEAPWATCH_STATE)/$(1)/bin/python" || { \
	PYTHONPATH=exporters:stack $(PYTHON) -c 'import pathlib, sys; from heapwatch_stack import state_folder; state_folder.make(pathlib.Path(sys.argv[1]))' "$(HEAPWATCH_STATE)" && \
	$(PYTHON) -m venv "$(HEAPWATCH_STATE)/$(1)"; }; \
	"$(HEAPWATCH_STATE)/$(1)/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check $(2)
test-kubernetes: ## Render the chart with helm, and check every object against its schema
	@$(call own,kubernetes,--no-deps -r requirements/kubernetes.txt)
	@"$(HEAPWATCH_STATE)/kubernetes/bin/python" -m tests.kubernetes
bench: dev ## Measure what watching costs; writes docs/benchmarks.md (ARGS=training: only that, not written)
	$(RUN) benchmarks $(ARGS)
gpu-test: dev ## Test on a real GPU: every series, verdict and adapter, a leak of each kind, the cost of watching
	$(RUN) benchmarks.gpu_check
bench-leaks: tools ## Measure precision, recall and delay of the leak rules (ARGS="--seed 7 --each 2")
	$(WITH_TOOLS) "$(BIN)/python" -m benchmarks.leaks $(ARGS)
bench-fleet: tools ## Measure the stack with 1 to 1000 simulated trainers; writes docs/fleet.md (ARGS="--trainers 100 --minutes 5")
	$(WITH_TOOLS) "$(BIN)/python" -m benchmarks.fleet $(or $(ARGS),--write)
bench-reach: dev ## Enter running processes on every Python that is here, and busy ones; writes docs/reach.md (ARGS="--seconds 20")
	$(RUN) benchmarks.reach $(or $(ARGS),--write)
bench-cases: dev ## Find leaks of public projects with Heapwatch and with other tools; writes docs/leak-cases.md (ARGS="--only replay --seconds 60 --jobs 2")
	$(RUN) benchmarks.cases $(ARGS)
examples-test: tools ## Run every example, healthy and with each of its leaks, against the alert rules (ARGS="--only walker")
	$(WITH_TOOLS) "$(BIN)/python" -m examples.check $(ARGS)
# In an environment of their own: their pins are not ours.
THIRD_PARTY := $(HEAPWATCH_STATE)/third-party-venv
bench-third-party: venv ## Run public trainers beside a running stack, healthy and leaking (ARGS="--only sb3 --minutes 10 --at-once 4")
	@PYTHONPATH=exporters:stack $(PYTHON) -m heapwatch_stack.bootstrap $(THIRD_PARTY) requirements/third-party.txt
	$(RUN) heapwatch tools > /dev/null
	$(WITH_TOOLS) $(THIRD_PARTY)/bin/python -m benchmarks.third_party $(ARGS)
screenshots: tools ## Take the pictures of the docs, from made-up history (ARGS=--running: from the running stack)
	$(WITH_TOOLS) "$(BIN)/python" -m docs.screenshots $(ARGS)
	$(RUN) docs.terminal
	$(RUN) docs.shown_elsewhere
docs: ## Build the documentation site, strictly, into .heapwatch/site
	@echo "building the site, which takes half a minute; the first time its tools are installed" >&2
	@$(call own,docs,-r requirements/docs.txt)
	@"$(HEAPWATCH_STATE)/docs/bin/mkdocs" build --strict --quiet --site-dir "$(HEAPWATCH_STATE)/site"
	@echo "$(HEAPWATCH_STATE)/site/index.html"
