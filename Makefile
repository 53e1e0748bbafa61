# The one front door. Every target sets up what it needs; the second run of a target skips that.
# Needs: make and Python 3.11 or newer. Java: the machine's JDK 17+, else the bundled one.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
# Where no bytecode is written, every process compiles all that it imports: images of containers
# like to say so, and tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

UV_VERSION := 0.13.7
BIN := .venv/bin
READY := .venv/.ready
SITE := .venv-site
SEED ?= 1
# Test processes side by side: two, as every machine has two cores.
WORKERS ?= 2
ONLY ?=

# The first interpreter that is new enough and can make a virtual environment.
FIND_PYTHON = for name in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.14 python; do \
	"$$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo "$$name"; break; }; done

# $(call MAKE_VENV,folder)
MAKE_VENV = python=$$($(FIND_PYTHON)); \
	if [ -z "$$python" ]; then \
		echo "No Python 3.11+ that can make a virtual environment was found." >&2; \
		echo "Install one (Debian and Ubuntu: python3 and python3-venv), or: make PYTHON=..." >&2; \
		exit 1; \
	fi; \
	rm -rf $(1); "$$python" -m venv $(1)

.PHONY: help demo test check bench prove docs dist sbom setup lock format clean

help:  ## this list
	@grep -hE '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /make \1\t/' | expand -t 14

demo: $(READY)  ## set up everything and run the main job
	$(BIN)/noonmark demo

test: $(READY)  ## set up everything and pass the tests: side by side, then those that must be alone
	@# Spark starts in less processor time with it; made once, and not needed.
	-@$(BIN)/python -m noonmark.compute.jvm.archive
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not alone"
	$(BIN)/pytest -m alone

check: $(READY)  ## formatting, lint, types, import contracts, tidy: fast, no JVM
	$(BIN)/ruff format --check src tests bench docs deploy dbt-noonmark
	$(BIN)/ruff check src tests bench docs deploy dbt-noonmark
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest tests/test_tidy.py tests/test_docs_generated.py tests/test_site.py tests/sql/test_meanings.py \
		-m "not slow"

bench: $(READY)  ## every speed figure, with its peers; ONLY=F1,F3 SEED=7
	$(BIN)/python -m bench speed --seed $(SEED) --only "$(ONLY)"

prove: $(READY)  ## every certainty figure; ONLY=C1,C4 SEED=7; KEEP=1 keeps what it shows, OLD=1 runs what is not kept
	$(BIN)/python -m bench certainty --seed $(SEED) --only "$(ONLY)" $(if $(KEEP),--keep) $(if $(OLD),--old)

docs: $(SITE)/.ready  ## the documents as a site, in site/: needs neither Java nor Spark
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict --quiet
	@echo "site/index.html"

dist: $(READY)  ## the wheels, in dist/: noonmark, and noonmark-reader without Spark
	rm -rf dist
	$(BIN)/python -m hatchling build -t wheel -d dist
	cd deploy/reader && ../../$(BIN)/python -m hatchling build -t wheel -d ../../dist/reader

sbom: $(READY)  ## the bill of materials and the list of licences, from the lock
	$(BIN)/python deploy/sbom.py

setup: $(READY)  ## the virtual environment alone

format: $(READY)  ## write what `make check` asks of the formatting
	$(BIN)/ruff format src tests bench docs deploy dbt-noonmark
	$(BIN)/ruff check --fix src tests bench docs deploy dbt-noonmark

lock: $(READY)  ## refresh requirements.lock, and that of the site
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --generate-hashes \
		--no-header --no-annotate --upgrade -o requirements.lock
	$(BIN)/uv pip compile docs/requirements.in --universal --generate-hashes --python-version 3.11 \
		--no-header --no-annotate --upgrade -o docs/requirements.lock

clean:  ## remove the virtual environments, the site and every cache
	rm -rf .venv $(SITE) site dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis bench/out

# An environment whose interpreter is gone is no environment.
$(shell $(BIN)/python -c "" 2>/dev/null || rm -f $(READY))

# uv installs the lock quickly; where uv cannot reach the index that pip is configured for, pip
# installs the same lock with the same hashes.
$(READY): requirements.lock pyproject.toml
	@$(BIN)/python -c "" 2>/dev/null || { $(call MAKE_VENV,.venv); }
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet "uv==$(UV_VERSION)" \
		|| echo "uv is not to be had here: pip will do" >&2
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock \
		|| $(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

$(SITE)/.ready: docs/requirements.lock
	@$(call MAKE_VENV,$(SITE))
	@$(SITE)/bin/python -m pip install --quiet --require-hashes -r docs/requirements.lock
	@touch $@
