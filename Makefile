# make demo, make test: everything else they need they make themselves.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
export PYTHONDONTWRITEBYTECODE := # keep bytecode: every command and worker would parse all sources

.PHONY: setup demo test browser warm check bench docs notebooks reliability clean

setup: warm

.venv/ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "windage needs Python 3.11 or newer; try make PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs]'
	@touch $@

demo: .venv/ready
	$(BIN)/windage demo

test: browser warm
	$(PYTEST)

# The browser tests need a chromium: $CHROME, one that is there, or one from apt-get.
browser: .venv/ready
	@$(BIN)/python -m tests.e2e.chrome || { \
		echo "installing chromium with apt-get"; \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; \
		$(BIN)/python -m tests.e2e.chrome; }

# Compiled once, before the workers of pytest would each do it; nothing to do if it is.
warm: .venv/ready
	$(BIN)/windage compile

check: .venv/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir out/site

bench: .venv/ready
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks

docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir out/site

notebooks: .venv/ready
	$(BIN)/python -m tests.docs.notebooks out/notebooks

# Kernels have no bounds checks: here they are compiled with them, in a cache of their own.
reliability: KERNELS := tests/unit tests/contract tests/property
reliability: browser warm
	WINDAGE_RELIABILITY=1 $(PYTEST) tests
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/out/bounds WINDAGE_PATIENCE=0 $(PYTEST) $(KERNELS)
	$(BIN)/python -X dev -m pytest -n auto --dist worksteal $(KERNELS)

clean:
	rm -rf .venv out .pytest_cache .mypy_cache .ruff_cache
