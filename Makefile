# Two commands do everything: `make audit` (the main job) and `make test` (every check).
# Each makes .venv, installs what it needs at the versions in constraints.txt, and skips that when nothing changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes: none of them compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

# What each command installs beside the package itself (extras of pyproject.toml).
extras_audit := [train]
extras_test := [train,ray,web,dev,docs,oracles,frameworks]
extras_bench := [train,web,dev,bench]

HUNT_MINUTES ?= 10

# The main job: nobody may become more than 90 % sure, except with probability 1 %.
AUDIT := $(BIN)/deniable audit digits --belief .9 --delta .01 --records 100 --steps 30 --trials 1000 --adjacency replace

.PHONY: help audit quick test docs hunt bench smoke oldest clean
.DELETE_ON_ERROR:

help:
	@echo "make audit   install and run the main job on built-in data"
	@echo "make quick   before a commit: lint, format, types, import contracts, the tests that are not slow (a minute)"
	@echo "make test    before a push: install and run every check, with all tests"
	@echo "make docs    build the documentation as a site, in site/; nothing is fetched"
	@echo "make hunt    look for faults with fresh random cases, HUNT_MINUTES=10 unless told"
	@echo "make bench   install and run the benchmarks against other packages"
	@echo "make smoke   before a release: install the package alone, outside of here, for every Python in PYTHONS, and try it"
	@echo "make oldest  the same with the oldest versions of what it needs"
	@echo "make clean   remove the virtual environment, caches and builds"

audit: $(VENV)/.installed-audit
	@rm -rf audit-out
	@echo "== the observer against noise scaled to local sensitivity: is the bound tight?"
	@$(AUDIT) --sensitivity local --out audit-out/local
	@echo "== the observer against differentially private training (global sensitivity): how loose is it here?"
	@$(AUDIT) --sensitivity global --out audit-out/global
	@echo "== one report of both runs, for the people who decide:"
	@$(BIN)/deniable report audit-out/local audit-out/global --out audit-out/report.html

# A core that has nothing left takes half of what another one has still to do.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist worksteal

define look_at_the_code
	@echo "== lint (ruff check)"
	@$(BIN)/ruff check .
	@echo "== format (ruff format)"
	@$(BIN)/ruff format --check .
	@echo "== types (mypy --strict)"
	@$(BIN)/mypy
	@echo "== import contracts (import-linter)"
	@$(BIN)/lint-imports --no-logo
endef

quick: $(VENV)/.installed-test
	$(look_at_the_code)
	@echo "== tests that are not slow (pytest), one process a core"
	@$(PYTEST) -m 'not slow'

test: $(VENV)/.installed-test
	$(look_at_the_code)
	@echo "== tests (pytest), one process a core"
	@$(PYTEST)

docs: $(VENV)/.installed-test
	@echo "== documentation (mkdocs), strict"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "site/index.html"

hunt: $(VENV)/.installed-test
	@echo "== hunt: random cases against independent routes, $(HUNT_MINUTES) minutes"
	@OMP_NUM_THREADS=1 $(BIN)/python -m hunt --minutes $(HUNT_MINUTES)

bench: $(VENV)/.installed-bench
	@echo "== benchmarks (pytest-benchmark); ratios are taken within this run"
	@$(BIN)/pytest benchmarks -W default

# Pythons for which a release is tried: names or paths.
PYTHONS ?= python3

smoke:
	@for python in $(PYTHONS); do \
	    place=$$(mktemp -d) && echo "== $$python" && \
	    $$python -m venv $$place/fresh && $$place/fresh/bin/pip install --quiet . && \
	    cp tests/smoke.py $$place && (cd $$place && fresh/bin/python smoke.py) && rm -rf $$place || exit 1; \
	done

# Lower bounds of pyproject.toml, as pins.
oldest:
	@place=$$(mktemp -d) && $(PYTHON) -m venv $$place/fresh && \
	    sed -n 's/^dependencies = \[\(.*\)\]/\1/p' pyproject.toml | tr -d '" ' | tr ',' '\n' | sed 's/>=\(.*\)/==\1.*/' > $$place/oldest.txt && \
	    cat $$place/oldest.txt && $$place/fresh/bin/pip install --quiet --requirement $$place/oldest.txt && \
	    $$place/fresh/bin/pip install --quiet --no-deps . && \
	    cp tests/smoke.py $$place && (cd $$place && fresh/bin/python smoke.py) && rm -rf $$place

clean:
	rm -rf $(VENV) build dist site audit-out src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .benchmarks

# `--clear` heals an environment whose making was interrupted.
$(VENV)/.created:
	@echo "== making $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.installed-%: $(VENV)/.created pyproject.toml constraints.txt
	@echo "== installing deniable$(extras_$*) (a minute or two the first time)"
	@$(BIN)/pip install --quiet --editable '.$(extras_$*)' --constraint constraints.txt
	@touch $@
