# Every target works on a fresh Debian or Ubuntu with python3 (3.11 or later), its -dev and -venv
# packages and gcc. PYTHON chooses the interpreter. One that already has what the tests import
# (an active virtual environment, say) is used as it is; any other one makes .venv/.

PYTHON ?= python3
HAS_ALL := $(shell $(PYTHON) -c "import importlib.metadata as m; \
    old = lambda name, least: int(m.version(name).split('.')[0]) < least; \
    print('no' if old('Cython', 3) or old('setuptools', 77) or old('click', 8) or old('rich', 13) \
    or old('pytest', 8) or old('hypothesis', 6) else 'yes')" 2>/dev/null)
ifeq ($(HAS_ALL),yes)
PY := $(PYTHON)
VENV :=
else
PY := .venv/bin/python
VENV := .venv/ready
endif

PYTEST := $(PY) -m pytest
QUICK := not slow and not soak and not interop
# How much of the long runs (crash states, kills, model steps) is done: a share of the full length.
EFFORT_ALL ?= 0.1

.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --upgrade pip "setuptools>=77" "Cython>=3.1"
	QUIVER_NO_EXTENSIONS=1 .venv/bin/python -m pip install --quiet --no-build-isolation -e ".[test]"
	@touch $@

venv: .venv/ready ## make .venv with everything the tests need, and the commands `journal`, `journal-bench`

dev: venv ## the same, with the tools of `make check` and `make coverage`
	QUIVER_NO_EXTENSIONS=1 .venv/bin/python -m pip install --quiet --no-build-isolation -e ".[dev]"

build: $(VENV) ## build the extensions in place
	@$(PY) setup.py --quiet egg_info build_ext --inplace

debug: $(VENV) ## the same with C asserts and bounds checks (`make build` goes back)
	@QUIVER_BUILD=debug $(PY) setup.py --quiet egg_info build_ext --inplace

test: build ## what a developer runs before a commit
	$(PYTEST) -m "$(QUICK)"

test-all: build ## all of it: crash states, kills, fuzzing, the reference; long runs at a tenth of their length
	$(PYTEST) -m "not soak" --effort $(EFFORT_ALL)

soak: build ## the long runs in full
	$(PYTEST) --effort 1

clean: ## remove what was built; .venv stays
	rm -rf build dist *.egg-info .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	find journal broker -name '*.so' -delete
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

.PHONY: help venv dev build debug test test-all soak clean
