# Every target works on a fresh Debian or Ubuntu with python3 (3.11 or later), its -dev and -venv
# packages and gcc. PYTHON chooses the interpreter. One that already has what the tests import
# (an active virtual environment, say) is used as it is; any other one makes .venv/. `make run`
# installs into it what the tour needs; `make test`, `make dev` and `make bench` add the rest.

PYTHON ?= python3
PY := $(or $(shell $(PYTHON) .ci/venv.py interpreter 2>/dev/null),$(CURDIR)/.venv/bin/python)
# Another PYTHON than that of .venv makes it again, but only if somebody gave one.
VENV_FOR = @$(PYTHON) .ci/venv.py $(1) $(if $(filter file,$(origin PYTHON)),,--chosen)

PYTEST := $(PY) -m pytest
QUICK := not slow and not soak and not interop
# How much of the long runs (crash states, kills, model steps) is done: a share of the full length.
EFFORT_ALL ?= 0.05
# Tests side by side. All wait for disks, servers and clocks about half of their time, a soak longer.
TEST_JOBS ?= 3
ALL_JOBS ?= 3
# Of Debian, for `make fresh`.
SUITE ?= bookworm
SOAK_JOBS ?= 4
# Of `make sim`.
STORY ?= everything
SEEDS ?= 200
# What a soak runs: all of it, or a part such as "tests/journal tests/crash".
SOAK_TESTS ?=
PARALLEL = -n $(1) --dist worksteal

MODULES = $(shell grep -cE '^    "(journal|broker|jdbcstore|pipeline)\.' setup.py)

# Every module that has a stub.
STUBBED = $(shell find journal jdbcstore broker pipeline -name '*.pyi' | sed -e 's/\.pyi$$//' -e 's,/,.,g' | sort)
# What a stub leaves out is internal.
STUBTEST := --mypy-config-file pyproject.toml --ignore-missing-stub

COPY_TREE = mkdir -p $(1) && find $(1) -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} + \
    && tar --exclude=./build --exclude=./.venv --exclude=./.git --exclude='*.so' \
    --exclude=__pycache__ --exclude='*.egg-info' -cf - . | tar -xf - -C $(1)

# Python itself is not instrumented, so the sanitizers' libraries come first, its own allocator is
# out of the way, and what it keeps until the end is no leak.
# They write to files: pytest keeps what goes to standard error, and dies with the process.
SANITIZER_LOG = $(CURDIR)/build/sanitize/report
SANITIZER_ENV = PYTHONMALLOC=malloc QUIVER_BUILD=sanitize \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:exitcode=66:log_path=$(SANITIZER_LOG) \
    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:log_path=$(SANITIZER_LOG) \
    LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so) $$(gcc -print-file-name=libstdc++.so)"
SANITIZE_TESTS ?= tests

.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv-run:
	$(call VENV_FOR,run)

venv: ## make .venv with everything the tests need, and the commands `journal`, `broker`, `pipeline`
	$(call VENV_FOR,test)

venv-all: venv
	$(call VENV_FOR,test-all)

dev: ## the same, with the tools of `make check` and `make coverage`
	$(call VENV_FOR,dev)

build: venv-run ## build the extensions in place
	@test -e build/mode || echo "compiling $(MODULES) extension modules: about 4 minutes on two cores"
	@$(PY) setup.py --quiet egg_info build_ext --inplace

debug: venv-run ## the same with C asserts and bounds checks (`make build` goes back)
	@QUIVER_BUILD=debug $(PY) setup.py --quiet egg_info build_ext --inplace

run: build ## show the main job: read a broker's journal, kill a writer and a broker, measure this disk
	@PYTHON=$(PY) sh docs/guide/tour.sh

test: venv build ## what a developer runs before a commit
	$(PYTEST) -m "$(QUICK)" $(call PARALLEL,$(TEST_JOBS))

fresh: ## README's lines on a new Debian: make fresh SUITE=trixie (root and debootstrap are needed)
	@.ci/fresh $(SUITE)

test-all: venv-all build ## all of it: crash states, kills, fuzzing, Artemis; long runs at a twentieth of their length
	$(PYTEST) -m "not soak" --effort $(EFFORT_ALL) $(call PARALLEL,$(ALL_JOBS))

soak: venv-all build ## the long runs in full; figures at the end
	$(PYTEST) --effort 1 $(call PARALLEL,$(SOAK_JOBS)) -o timeout=7200 $(SOAK_TESTS)

sim: venv build ## brokers and clients by seed, under faults: make sim STORY=crashes SEEDS=1000 (docs/simulation.md)
	$(PY) -m tests.sim --story $(STORY) --seeds $(SEEDS) --jobs $(TEST_JOBS)

test-db: venv build ## the store's suites on a database of yours, which must be empty: make test-db URL=jdbc:postgresql://…
	@test -n "$(URL)" || { echo "usage: make test-db URL=<JDBC or SQLAlchemy URL>" >&2; exit 2; }
	$(PYTEST) -m "not soak" --effort $(EFFORT_ALL) --database-url "$(URL)" tests/contract tests/crash tests/fuzz tests/jdbcstore

check: dev build ## format, lint, types, stubs, layers, docs
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	PATH="$(dir $(PY)):$$PATH" cython-lint journal jdbcstore broker pipeline
	$(PY) -m codespell_lib
	$(PY) -m mypy
	$(PY) -m mypy.stubtest $(STUBTEST) $(STUBBED)
	PATH="$(dir $(PY)):$$PATH" clang-format --dry-run -Werror ext/*.c ext/*.h
	for source in ext/*.c; do \
	    $(CC) -std=c11 -D_GNU_SOURCE -Iext -Wall -Wextra -Werror -fsyntax-only $$source || exit 1; \
	done
	$(PYTEST) tests/house

# The two below never touch the build in place: they work on a copy of the tree.
sanitize: venv ## C and Cython under the address and undefined-behaviour sanitizers
	@$(call COPY_TREE,build/sanitize)
	cd build/sanitize && QUIVER_BUILD=sanitize $(PY) setup.py --quiet egg_info build_ext --inplace
	cd build/sanitize && rm -f report.* && env $(SANITIZER_ENV) \
	    $(PYTEST) -m "$(QUICK)" -p no:cacheprovider $(SANITIZE_TESTS); \
	    status=$$?; cat report.* 2>/dev/null; test $$status = 0 && ! ls report.* >/dev/null 2>&1

coverage: dev ## Python and Cython lines that the tests reach
	@$(call COPY_TREE,build/coverage)
	cd build/coverage && QUIVER_BUILD=coverage $(PY) setup.py --quiet egg_info build_ext --inplace
	cd build/coverage && $(PY) -m coverage run -m pytest -m "$(QUICK)" -p no:cacheprovider
	cd build/coverage && $(PY) -m coverage report

docs-venv:
	$(call VENV_FOR,docs)

docs: docs-venv build ## the manual as a site, in build/site/index.html
	PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	$(PY) -m docs.site.check

release: dev build ## sdist, wheel, container file, systemd unit, SBOM in dist/, tried in an empty environment
	$(PY) .ci/release.py

bench-peers:
	$(call VENV_FOR,bench)

bench: bench-peers build ## figures beside the limit of this disk and other engines, as ratios
	$(PY) -m benchmarks.compare

bench-compare: build ## figures of this tree beside those of commit REF
	@test -n "$(REF)" || { echo "usage: make bench-compare REF=<commit>" >&2; exit 2; }
	rm -rf build/reference && mkdir -p build/reference
	git archive $(REF) | tar -xf - -C build/reference
	cd build/reference && $(PY) setup.py --quiet egg_info build_ext --inplace
	$(PY) -m benchmarks.compare --tree build/reference

clean: ## remove what was built; .venv stays
	rm -rf build dist *.egg-info .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	find journal jdbcstore broker pipeline -name '*.so' -delete
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

# Each target takes all cores itself.
.NOTPARALLEL:
.PHONY: docs docs-venv release bench-peers venv-run venv-all help fresh venv dev build debug run test test-all test-db soak check sanitize coverage bench bench-compare clean
