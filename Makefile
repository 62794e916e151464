# Few words, each a line or two. PYTHON is what .venv is made with.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ROOTS := launch/determined_launch harness/determined master/determined_master agent/determined_agent workflows/determined_workflows \
	cli/determined_cli workflows/hydra-launcher/hydra_plugins
# The official client, unmodified, in an environment of its own beside ours.
OFFICIAL := .cache/official
MLFLOW := .cache/mlflow
OPTUNA := .cache/optuna
MLRUNNER := .cache/mlrunner
AZURITE := .cache/azurite
INSTALLERS := .cache/installers
WORKERS ?= 3
PYTEST = $(BIN)/pytest -n $(WORKERS) --dist loadgroup -q
UNIT_NEEDS = install debian azurite installers mlrunner webui-types
E2E_NEEDS = install install-launchers $(VENV)/frameworks debian official container-engine webui docs
# What masters do with rows, on PostgreSQL too; make test-long runs all of these folders on it.
ON_POSTGRESQL := $(addprefix tests/integration/test_,columns.py deletion.py experiment_index.py experiments.py gangs.py metrics.py)
# Whatever the shell says: Python compiles a module once, not in each of the thousands of processes that the tests start.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install install-launchers install-browser demo webui webui-types fmt unit e2e suite test-parts test-long test-lowest test-newest wheel wheel-test test official debian azurite installers mlflow optuna mlrunner images \
	container-engine \
	pictures bench mutants docs clean check check-style check-types check-types-3.10 check-pyright check-page

help:
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

install: $(VENV)/installed ## make .venv with everything pinned (adds no Debian package)

$(VENV)/installed: pyproject.toml constraints.txt
	@sh scripts/install.sh $(PYTHON) $(VENV)
	@touch $@

install-launchers: $(VENV)/launchers ## the real deepspeed and horovod in .venv; builds horovod once (may add g++ make cmake)

$(VENV)/launchers: $(VENV)/installed scripts/install_launchers.sh constraints.txt
	@sh scripts/install_launchers.sh $(VENV)
	@touch $@

$(VENV)/frameworks: $(VENV)/installed constraints.txt  # beside the product, as a user would, so that tasks see them
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-compile -c constraints.txt \
		accelerate pytorch-lightning transformers
	@touch $@

install-browser: install ## the Chromium that the page's tests drive (adds Debian packages)
	@sh scripts/install_browser.sh

debian: install-browser  # what the other tests need of it
	@sh scripts/install_test_tools.sh

webui/node_modules/.package-lock.json: webui/package-lock.json $(VENV)/installed
	@sh scripts/webui.sh $(VENV) install

webui-types: install webui/node_modules/.package-lock.json
	@sh scripts/webui.sh $(VENV) types

webui: webui-types ## the web page, built into webui/dist; types from the master's own OpenAPI page
	@sh scripts/webui.sh $(VENV) build

demo: install webui ## train, pause, activate and finish a real experiment on a cluster of this machine
	@$(BIN)/python examples/demo.py

check: install ## ruff, mypy strict (twice), pyright, the floors, the house's own rules; tsc, eslint, dependency-cruiser and prettier
	@$(MAKE) --no-print-directory -j2 check-page check-types check-types-3.10 check-pyright check-style

check-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.house_rules
	$(BIN)/python scripts/dead_code.py
	$(BIN)/python scripts/small_files.py
	$(BIN)/deptry launch harness master agent workflows cli

check-types:
	$(BIN)/mypy $(ROOTS)

check-types-3.10:
	$(BIN)/mypy --python-version 3.10 --cache-dir .mypy_cache/launch launch/determined_launch harness/determined

check-pyright:
	$(BIN)/pyright --pythonpath $(BIN)/python

check-page: webui-types
	sh scripts/webui.sh $(VENV) check

fmt: install webui/node_modules/.package-lock.json ## format and mend what can be mended
	$(BIN)/ruff check --fix-only -q .
	$(BIN)/ruff format -q .
	@sh scripts/webui.sh $(VENV) format

unit: $(UNIT_NEEDS) ## the fast tests
	sh scripts/webui.sh $(VENV) test
	$(PYTEST) -m "not long" --ignore tests/e2e tests
	$(PYTEST) -m "not long" --postgresql $(ON_POSTGRESQL)

e2e: $(E2E_NEEDS) ## real master, agents, tasks, browser; the official client (may add Debian packages)
	$(PYTEST) -m "not long" tests/e2e

test-long: install install-launchers $(VENV)/frameworks debian official azurite installers mlrunner container-engine webui docs ## longer forms of what make test shows; before a release
	@[ "$$(id -u)" != 0 ] || sh scripts/launchers_image.sh $(VENV) detent-test:launchers
	@sh scripts/install_test_tools.sh long
	$(PYTEST) -m long tests
	$(PYTEST) --hypothesis-profile default $$(git grep -l '^from hypothesis' tests)
	$(PYTEST) --postgresql tests/integration tests/master tests/statements

test-lowest: install debian webui-types ## the lowest versions of dependencies that pyproject.toml allows
	@sh scripts/dependency_bounds.sh lowest $(PYTHON) .cache/lowest

test-newest: install debian webui-types ## the newest versions that pyproject.toml allows, of extras with private parts too
	@sh scripts/dependency_bounds.sh newest $(PYTHON) .cache/newest

wheel: install webui docs ## the wheel of this version with page and documentation, into dist
	$(BIN)/python -m build -q --outdir dist .

wheel-test: install install-browser webui docs ## the wheel, by way of the sdist, in a fresh environment and an empty folder
	sh scripts/wheel_test.sh $(PYTHON)

test: ## everything; ends with the core minutes that it took
	@$(PYTHON) scripts/core_minutes.py "make test" $(MAKE) --no-print-directory test-parts

test-parts:
	@$(PYTHON) scripts/core_minutes.py "install" $(MAKE) --no-print-directory install $(VENV)/docs
	@$(PYTHON) scripts/core_minutes.py "check" $(MAKE) --no-print-directory -j7 container-engine official azurite mlrunner installers check docs  # most wait for packages more than they work; the longest first
	@$(PYTHON) scripts/core_minutes.py "suite" $(MAKE) --no-print-directory -j2 suite wheel-test  # the wheel waits for servers and a browser more than it works

suite: $(UNIT_NEEDS) $(E2E_NEEDS)  # unit and e2e in one session, so that no worker waits between them
	sh scripts/webui.sh $(VENV) test
	$(PYTEST) --durations=40 -m "not long" tests
	$(PYTEST) -n 2 -m "not long" --postgresql $(ON_POSTGRESQL)  # few tests: a third worker would import more than it runs

container-engine: install debian ## a Docker engine from Debian and the default image of tasks, for the tests of containers (root only)
	@sh scripts/container_engine.sh .cache/container-engine $(VENV)

images: install $(if $(filter master agent,$(KINDS)),webui docs) ## the default image of tasks on CPU slots (KINDS="cuda rocm" for GPUs, "master agent" for docker-compose.yml); needs docker
	@sh scripts/images.sh $(VENV) $(KINDS)

official: $(OFFICIAL)/installed

$(OFFICIAL)/installed:
	@sh scripts/install_official.sh $(PYTHON) $(OFFICIAL)
	@touch $@

azurite: $(AZURITE)/installed

$(AZURITE)/installed: $(VENV)/installed scripts/install_azurite.sh
	@sh scripts/install_azurite.sh $(VENV) $(AZURITE)
	@touch $@

installers: $(INSTALLERS)/installed

$(INSTALLERS)/installed: Makefile
	@echo "installers: uv and pipenv into $(INSTALLERS)"
	@$(PYTHON) -m venv $(INSTALLERS)
	@$(INSTALLERS)/bin/python -m pip install --quiet uv==0.13.9 pipenv==2026.10.3
	@touch $@

mlflow: $(MLFLOW)/installed ## MLflow, whose page ours is measured against, in an environment of its own

$(MLFLOW)/installed:
	@sh scripts/install_mlflow.sh $(PYTHON) $(MLFLOW)
	@touch $@

optuna: $(OPTUNA)/installed ## Optuna, whose search ours is measured against, in an environment of its own

$(OPTUNA)/installed:
	@sh scripts/install_optuna.sh $(PYTHON) $(OPTUNA)
	@touch $@

mlrunner: $(MLRUNNER)/installed ## mlrunner, whose files ours are compared with, in an environment of its own

$(MLRUNNER)/installed: scripts/install_mlrunner.sh
	@sh scripts/install_mlrunner.sh $(PYTHON) $(MLRUNNER)
	@touch $@

pictures: install install-browser webui docs ## pictures from a real run: those in git into docs/pictures (of every page and tab: python -m tests.e2e.web.pictures FOLDER)
	$(BIN)/python -m tests.e2e.web.pictures docs/pictures --kept

bench: install webui ## every figure as a ratio to its reference, in one run
	$(BIN)/python -m bench

$(VENV)/docs: $(VENV)/installed
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

docs: $(VENV)/docs ## the documentation site, served under /docs; a warning is an error
	$(BIN)/sphinx-build -q -W --keep-going -d docs/_build/doctrees -b html docs docs/_build/html

mutants: install install-launchers debian webui-types ## mutation tests: each patch must make its tests fail
	$(BIN)/python tests/mutants/run.py

clean:
	rm -rf $(VENV) .cache dist build webui/dist webui/node_modules
