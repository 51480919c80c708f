# The stand-in and the checks. Every target sets up what it misses, and does the second time only what changed.
# The real thing needs none of this but `make leftovers`: `pulumi preview`, `pulumi up`, `pulumi destroy`.

PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.requirements
RUN := $(VENV)/bin/python -m simulation
FAST := -m "not slow"
STACK := dev

.DEFAULT_GOAL := help
.PHONY: help preview up destroy state shell leftovers test test-slow test-all bench smoke flags lint format types clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): requirements.txt requirements-dev.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	@echo "Installing the Python packages into $(VENV) (a minute or two, once)."
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

preview: $(STAMP) ## preview the default stack on simulated AWS
	@$(RUN) run -- pulumi preview

up: $(STAMP) ## stand the stack up on simulated AWS and a real local control plane
	@$(RUN) run --cluster -- pulumi up --yes --skip-preview

destroy: $(STAMP) ## take the simulated stack down again
	@$(RUN) run --cluster -- pulumi destroy --yes --skip-preview
	@$(RUN) retained

state: $(STAMP) ## print the exported state of the simulated stack
	@$(RUN) run -- pulumi stack export

shell: $(STAMP) ## a shell in which plain pulumi, kubectl and aws see the simulation only
	@$(RUN) shell --cluster

leftovers: $(STAMP) ## what of a real stack still exists in AWS and bills: make leftovers STACK=dev
	@$(VENV)/bin/python -m operations.leftovers Pulumi.$(STACK).yaml

test: lint types ## lint, types and every test that takes seconds
	@$(RUN) tools
	$(VENV)/bin/python -m pytest $(FAST)

test-slow: $(STAMP) ## the tests that need the real control plane or minutes
	@$(RUN) tools --cluster
	@$(VENV)/bin/python -m tests.tools
	$(VENV)/bin/python -m pytest -m slow

test-all: test test-slow ## both

bench: $(STAMP) ## the project's measurements: the planner's memory model against published and own runs
	$(VENV)/bin/python -m bench.memory_accuracy

smoke: $(STAMP) ## ask a served model (VLLM_API_KEY holds the key) while `pulumi stack output connect` runs
	@$(VENV)/bin/python -m operations.smoke

flags: $(STAMP) ## write planner/vllm_flags.json from vLLM's own parser
	@$(VENV)/bin/python -m tests.tools
	@$(VENV)/bin/python -m tests.vllm.flags

lint: $(STAMP) ## ruff: rules and format
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check

format: $(STAMP) ## mend what ruff can mend
	$(VENV)/bin/ruff check --fix
	$(VENV)/bin/ruff format

types: $(STAMP) ## mypy, strict
	$(VENV)/bin/mypy .

clean: ## end the local control plane; remove simulated state, virtual environment and caches
	@test ! -e .simulation || $(RUN) stop
	rm -rf $(VENV) .simulation Pulumi.simulated*.yaml .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
