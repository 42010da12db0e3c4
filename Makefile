# Works with GNU make 3.81 and later. `make help` says what there is.
# PYTHON=/path/to/python chooses the Python for .venv; without it the first that runs and is new enough is taken.

ifdef PYTHON
candidates = "$(PYTHON)"
else
candidates = python3.13 python3.12 python3 python
endif

python = .venv/bin/python
pytest_args =
bench_args =
eval_args =
nbval = --nbval --nbval-current-env --nbval-cell-timeout 120

.PHONY: help demo lab test lint eval bench clean FORCE

help:
	@echo 'make demo    make .venv, install, run the AcmeShop investigation on an embedded FalkorDB'
	@echo 'make lab     open JupyterLab on the quickstart notebook'
	@echo 'make test    run every test: unit, contract, docstrings, notebooks, JupyterLab in a browser'
	@echo 'make lint    ruff (check and format) and mypy'
	@echo 'make eval    print how well each mode of retrieval finds the evidence, and what it costs'
	@echo 'make bench   print the benchmarks, beside peers'
	@echo 'make clean   remove .venv, builds and caches; workspaces are kept'
	@echo
	@echo 'Needs Python 3.12 or newer; choose one with make PYTHON=/path/to/python3.12 demo'

demo: .venv/.demo
	@.venv/bin/contextmesh demo acmeshop

lab: .venv/.lab
	@.venv/bin/contextmesh lab

# The tests and the notebooks get a data folder of their own: nobody's workspaces are touched. The first line sees to it
# that there is a browser, where it may; tests/browser/chromium.py says how.
test: .venv/.test
	@$(python) -m tests.browser.chromium
	@data=$$(mktemp -d) && trap 'rm -rf "$$data"' EXIT && \
	env -u CONTEXTMESH_URL -u GROQ_API_KEY CONTEXTMESH_DATA_DIR="$$data" $(python) -m pytest $(nbval) contextmesh tests notebooks $(pytest_args)

lint: .venv/.dev
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy

bench: .venv/.bench
	@$(python) -m tests.benchmarks $(bench_args)

# CONTEXTMESH_REAL_DATA names a folder of public sets to measure on, too; eval_args='--embedder module:name' a dense part.
eval: .venv/.demo
	@env -u CONTEXTMESH_URL $(python) -m tests.evaluation $(eval_args)

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks screenshots
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- .venv: made once; an install runs again only when pyproject.toml changes. A larger install covers the smaller ones.

install = $(python) -m pip install -qq --disable-pip-version-check --editable '$(1)' || { echo 'The install failed. Where\
 FalkorDB has no ready-made build for a system, pip compiles its server, which takes a C compiler and make (Debian and\
 Ubuntu: apt install build-essential; macOS: xcode-select --install).' >&2; exit 1; }

.venv/.demo: .venv/.made pyproject.toml
	@echo 'Installing contextmesh and FalkorDB into .venv (about a minute, once; five where FalkorDB has to be compiled) ...'
	@$(call install,.)
	@touch .venv/.demo

.venv/.lab: .venv/.made pyproject.toml
	@echo 'Installing contextmesh, FalkorDB and JupyterLab into .venv (about a minute, once; five where FalkorDB has to be compiled) ...'
	@$(call install,.[lab])
	@touch .venv/.demo .venv/.lab

.venv/.test: .venv/.made pyproject.toml
	@echo 'Installing contextmesh, FalkorDB, JupyterLab and the test tools into .venv (about two minutes, once; six where FalkorDB has to be compiled) ...'
	@$(call install,.[lab$(comma)groq$(comma)test])
	@touch .venv/.demo .venv/.lab .venv/.test

.venv/.bench: .venv/.made pyproject.toml
	@echo 'Installing contextmesh, FalkorDB, JupyterLab and the peers that the benchmarks compare with into .venv (about two minutes, once; six where FalkorDB has to be compiled) ...'
	@$(call install,.[lab$(comma)test$(comma)bench])
	@touch .venv/.demo .venv/.lab .venv/.bench

.venv/.dev: .venv/.made pyproject.toml
	@echo 'Installing contextmesh with everything to develop it into .venv (about two minutes, once; six where FalkorDB has to be compiled) ...'
	@$(call install,.[lab$(comma)groq$(comma)test$(comma)dev])
	@touch .venv/.demo .venv/.lab .venv/.test .venv/.dev

comma = ,

# A .venv whose folder was moved, or whose Python is gone, is made anew: its scripts name the old place.
stale := $(shell test -f .venv/.made || exit 0; \
	$(python) -c '' >/dev/null 2>&1 && test "$$(cat .venv/.made)" = "$$(pwd -P)" || echo stale)
ifeq ($(stale),stale)
.venv/.made: FORCE
endif

# Says "keep" where a usable .venv is there already, "use PYTHON" where one is to be made, or else what is missing.
# Each candidate is run, since a shim on the PATH may stand for nothing.
check = import sys; print("%d.%d.%d at %s" % (sys.version_info[:3] + (sys.executable,)))
check += ; sys.version_info < (3, 12) and sys.exit(3); import ensurepip, venv
define find_python
$(shell \
	test ! -f .venv/.made && $(python) -c '$(check); import pip' >/dev/null 2>&1 && { echo keep; exit 0; }; \
	for candidate in $(candidates); do \
		found=$$("$$candidate" -c '$(check)' 2>/dev/null) && { echo "use $$candidate"; exit 0; }; \
		test $$? = 1 && test -n "$$found" && { bare=$${bare:-$$found}; continue; }; \
		old=$${old:-$$found}; \
	done; \
	if test -n "$$bare"; then \
		echo "contextmesh needs the venv module, which Python $$bare lacks. Install it (Debian and Ubuntu: apt install python3-venv) or run: make PYTHON=/path/to/python3.12 demo"; \
	else \
		echo "contextmesh needs Python 3.12 or newer; found $${old:-none}. Install one or run: make PYTHON=/path/to/python3.12 demo"; \
	fi)
endef

.venv/.made:
	$(eval answer := $(find_python))
	$(if $(filter keep use,$(firstword $(answer))),,$(error $(answer)))
	@$(if $(filter use,$(firstword $(answer))),rm -rf .venv && "$(wordlist 2,99,$(answer))" -m venv .venv,:)
	@pwd -P > .venv/.made
