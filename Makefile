# Set-up, runs and checks. `make help` lists the targets.

PYTHON ?= python3
ARGS ?=
VERSION ?=
SUITES ?=
# Quick tests wait for Spark and for servers a third of their time, so two cores keep three of them busy.
WORKERS ?= $(if $(filter test,$(MAKECMDGOALS)),3,2)

VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements/dev.lock
LOCK_VENV := build/lock-venv
DOCS_VENV := build/docs-venv
FLINK_VENV := build/flink-venv
WHEEL_VENV := build/wheel-venv

# Spark's workers run this Python; by default they would take the python3 of the PATH.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)

# Tests start many processes; each would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

# Java is looked up each time: it belongs to the machine, not to the environment.
WITH_JAVA := JAVA_HOME="$$(scripts/setup_java.sh)" && export JAVA_HOME &&

# They run many small ticks; `make cluster` and the tests of tasks compute theirs in tasks of Spark.
crash soak conformance expressions bench wheel: export ROWTIME_SMALL_TICKS ?= driver

.DEFAULT_GOAL := help
.PHONY: help env run test wheel slow goldens lint fuzz crash model soak cluster conformance expressions bench campaign docs options outputs pictures matrix release flink format lock \
	clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: $(VENV)/.ready ## make the environment in .venv: the locked packages and rowtime itself

run: env ## run the main job, an example over a year of flights
	@$(WITH_JAVA) $(BIN)/python -m examples.flights $(ARGS)

test: env ## run the tests (ARGS="-k tsort" selects some, WORKERS=0 uses one process)
	@$(WITH_JAVA) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(ARGS)

slow: env ## run the slow tests, which `make test` leaves out
	@$(WITH_JAVA) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m slow $(ARGS)

goldens: env ## rewrite the golden files of plans (tests/goldens/plans); review the diff
	@$(WITH_JAVA) $(BIN)/python -m pytest -n $(WORKERS) tests/goldens --rewrite-goldens $(ARGS)

# Tests the product, not the checkout: without the source folder and the packages of the dev extra.
wheel: env ## build the wheel, install it in a new environment, and run transcripts, README and tutorial there
	@rm -rf $(WHEEL_VENV) build/dist
	@$(BIN)/python -m hatchling build -t wheel -d build/dist
	@scripts/setup_venv.sh "$(PYTHON)" $(WHEEL_VENV)
	@$(WHEEL_VENV)/bin/python -m pip install --quiet -c $(LOCK) build/dist/*.whl
	@$(WHEEL_VENV)/bin/python -m pip check
	@$(WITH_JAVA) cd build && env -u PYSPARK_PYTHON -u PYSPARK_DRIVER_PYTHON -u PYTHONPATH \
		wheel-venv/bin/rowtime test ../tests/transcripts/sqlstream ../tests/transcripts/*.yaml
	@$(WITH_JAVA) scripts/first_hour.sh $(WHEEL_VENV)/bin

lint: env ## run every linter, the type checker and the checks of sizes, names, import circles and switches over operators
	@failed=; \
	for check in "ruff check" "ruff format --check" mypy lint-imports \
		"lint-imports --config scripts/import_circles.toml" "python scripts/check_sizes.py" \
		"python scripts/check_operators.py" \
		"python scripts/check_columns.py" "python scripts/check_names.py"; do \
		echo "== $$check"; \
		$(BIN)/$$check || failed="$$failed, $$check"; \
	done; \
	if [ -n "$$failed" ]; then echo "Failed: $${failed#, }"; exit 1; fi

fuzz: env ## feed random input to everything that reads SQL, rows, bounds, logs and checkpoints (ARGS="--inputs 1000000" for more)
	@$(BIN)/python -m reliability.fuzz --workers $(WORKERS) $(ARGS)

crash: env ## kill drivers, stop them at every write and let writes fail (ARGS="--stops 2000 --kills 40 --faults 100" for less)
	@$(WITH_JAVA) $(BIN)/python -m reliability.crash $(ARGS)

model: env ## check the TLA+ model of the commit, and that each of its guards is needed (ARGS="--short" for less)
	@$(WITH_JAVA) $(BIN)/python -m reliability.model $(ARGS)

soak: env ## run one query for an hour at a steady rate: nothing may grow (ARGS="--minutes 5" for less)
	@$(WITH_JAVA) $(BIN)/python -m reliability.soak $(ARGS)

cluster: env ## run pipelines on a Spark cluster whose workers are killed (ARGS="--pipelines 6" for less)
	@$(WITH_JAVA) $(BIN)/python -m reliability.cluster $(ARGS)

conformance: env ## run others' tests and random pipelines beside DuckDB (SUITES=folder, ARGS="--write" writes the page)
	@$(WITH_JAVA) SUITES="$(SUITES)" $(BIN)/python -m conformance $(ARGS)

expressions: env ## compare 20,000 random expressions on the driver with Spark (ARGS="--expressions 2000 --seed 7")
	@$(WITH_JAVA) $(BIN)/python -m conformance.engines $(ARGS)

bench: env ## run the short benchmarks
	@$(WITH_JAVA) $(BIN)/python -m benchmarks --short $(ARGS)

campaign: env ## run all campaigns and the slow tests in their full forms, hours; before a release
	@for part in lint test model fuzz crash cluster conformance expressions soak bench slow; do \
		echo "== make $$part"; $(MAKE) $$part || failed="$$failed $$part"; done; \
	if [ -n "$$failed" ]; then echo "Failed:$$failed"; exit 1; fi

matrix: env ## transcripts, flights and a short crash run on each Spark and Python (ARGS="4.2.1" for one Spark)
	@rm -rf build/dist
	@$(BIN)/python -m hatchling build -t wheel -d build/dist
	@$(WITH_JAVA) scripts/matrix.sh "$(PYTHON)" $(LOCK) $(ARGS)

release: env ## prepare a version: make release VERSION=0.2.0; builds wheel and sdist and tests both in new environments
	@$(WITH_JAVA) scripts/release.sh "$(PYTHON)" "$(VERSION)"

flink: $(FLINK_VENV)/.ready ## make the environment with PyFlink, for benchmarks that compare with it

$(FLINK_VENV)/.ready: requirements/flink.lock scripts/setup_venv.sh
	@scripts/setup_venv.sh "$(PYTHON)" $(FLINK_VENV)
	@$(FLINK_VENV)/bin/python -m pip install --quiet -r requirements/flink.lock
	@touch $@

docs: $(DOCS_VENV)/.ready ## build the site of the docs into site/; a broken link, anchor or docstring is an error (ARGS=--external also follows links to other sites)
	@PATH="$(CURDIR)/$(DOCS_VENV)/bin:$$PATH" NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/python -m mkdocs build
	@$(DOCS_VENV)/bin/python scripts/check_site.py $(ARGS)

options: env ## rewrite the tables of options and of commands in docs/ from the declarations in the code
	@$(BIN)/python scripts/option_tables.py
	@$(BIN)/python scripts/command_tables.py

outputs: env ## write what the examples of the docs give into the pages, from runs (ARGS="-k kafka" selects some)
	@$(WITH_JAVA) $(BIN)/python -m pytest tests/docs/test_page_outputs.py tests/docs/test_function_lists.py \
		tests/*/test_pages_on_*.py --rewrite-goldens $(ARGS)

pictures: env ## draw the pictures of the docs from runs of rowtime
	@$(WITH_JAVA) $(BIN)/python scripts/pictures.py

$(DOCS_VENV)/.ready: requirements/docs.lock scripts/setup_venv.sh
	@scripts/setup_venv.sh "$(PYTHON)" $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip install --quiet -r requirements/docs.lock
	@touch $@

format: env ## format the code and fix what ruff can fix
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

lock: ## rewrite requirements/dev.lock from pyproject.toml
	@scripts/setup_venv.sh "$(PYTHON)" $(LOCK_VENV)
	@$(LOCK_VENV)/bin/python -m pip install --quiet '.[dev,kafka]'
	@{ echo "# Made by \`make lock\` from the dependencies and the dev extra in pyproject.toml."; \
	   $(LOCK_VENV)/bin/python -m pip freeze --exclude rowtime; } > $(LOCK).new
	@mv $(LOCK).new $(LOCK)
	@rm -r $(LOCK_VENV)
	@echo "Wrote $(LOCK)."

clean: ## remove the environment, caches and builds; streams and checkpoints stay
	@rm -rf $(VENV) build dist spark-warehouse .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# If the lock changes, the environment is made again from scratch, so it has only packages of the lock.
$(VENV)/.locked: $(LOCK) scripts/setup_venv.sh
	@scripts/setup_venv.sh "$(PYTHON)" $(VENV)
	@echo "Installing the packages of $(LOCK) ..."
	@$(BIN)/python -m pip install --quiet -r $(LOCK)
	@touch $@

# The build tools are locked too, so the build is not isolated.
$(VENV)/.ready: $(VENV)/.locked pyproject.toml
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@$(BIN)/python -m pip check
	@touch $@
