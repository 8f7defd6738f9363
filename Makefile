# Every target sets up .venv by itself; `make help` lists them.
#
#   PYTHON     the interpreter .venv is built on; python3 if there is no .venv yet
#   EXTRAS     the extras it gets: "make test EXTRAS=tensorflow,dev" leaves PyTorch and MXNet out
#   INSTALLER  what installs them, uv or pip; scripts/install says more
#   ARGS       what is passed on to the tool: make test ARGS="-k numpy"

PYTHON ?=
EXTRAS ?= tensorflow,mxnet,torch,explain,since
ARGS ?=

export PYTHON EXTRAS

# Containers often forbid bytecode files; without them every child process compiles fwbench again.
export PYTHONDONTWRITEBYTECODE :=

BIN := .venv/bin

# A first measurement is quicker without what developers need, and without all that is tested.
# Of all targets of a call, as .venv is made once.
ifneq (,$(filter docs pages idioms samples format lock dist test lint verify,$(MAKECMDGOALS)))
EXTRAS := $(EXTRAS),dev
endif
ifneq (,$(filter test lint verify,$(MAKECMDGOALS)))
EXTRAS := $(EXTRAS),onnxruntime,litert,ray
endif

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile | while IFS='	' read -r target does; do \
		printf '  make %-8s %s\n' "$$target" "$$does"; \
	done

.PHONY: venv
venv: ## create .venv, or add to it what is missing
	@scripts/install

.PHONY: bench
bench: venv ## measure: pytest benchmarks $(ARGS)
	$(BIN)/pytest benchmarks $(ARGS)

.PHONY: verify
verify: venv ## verify every operation at its smallest size, in every cell, without timing: $(ARGS)
	$(BIN)/pytest benchmarks --benchmark-disable --fw-family=all \
		--fw-dtype=float32,float64,float16,bfloat16,complex64,complex128,float8_e4m3fn $(ARGS)

.PHONY: test
test: venv ## run the tests, one on each CPU: pytest $(ARGS); ARGS=-n0 for one at a time
	$(BIN)/pytest -n logical --maxprocesses=8 --dist=loadfile --no-loadscope-reorder \
		-m "not nightly" -ra --durations=20 $(ARGS)

.PHONY: lint
lint: venv ## check style, types and workflows
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/actionlint -shellcheck $(BIN)/shellcheck
	$(BIN)/zizmor --offline --pedantic --quiet .github

.PHONY: docs
docs: venv ## build the documentation as a site, in site/; no page and no link may be broken
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.PHONY: pages
pages: venv ## write the pages of docs/ that come from the code
	$(BIN)/python -m fwbench_extras.pages idioms > docs/idioms.md
	$(BIN)/python -m fwbench_extras.pages options > docs/options.md
	$(BIN)/python -m fwbench_extras.pages commands > docs/commands.md
	$(BIN)/python -m fwbench_extras.pages frameworks > docs/frameworks.md
	$(BIN)/python -m fwbench_extras.pages record > docs/record.md
	$(BIN)/python -m fwbench_extras.pages cheats > docs/cheats.md
	$(BIN)/python -m fwbench_extras.pages regressions > docs/regressions.md
	$(BIN)/fwbench list --markdown > docs/operations.md
	$(BIN)/python -m fwbench_extras.schemas

.PHONY: idioms
idioms: venv ## measure how else frameworks compute operations, on an idle machine: all, or $(ARGS)
	$(BIN)/python benchmarks/harness/idioms.py --record=1 $(ARGS)
	$(BIN)/python -m fwbench_extras.pages idioms > docs/idioms.md

.PHONY: samples
samples: venv ## print the sample output in documents again, on an idle machine: all, or of $(ARGS)
	PYTHONPATH=tests $(BIN)/python scripts/samples.py $(ARGS)

.PHONY: format
format: venv ## format the code and fix what can be fixed
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

.PHONY: lock
lock: venv ## resolve constraints.txt again; ARGS=--upgrade takes newer versions
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras \
		--custom-compile-command "make lock" $(ARGS) --output-file constraints.txt pyproject.toml

.PHONY: dist
dist: venv ## build wheel and source distribution into dist/, and check them
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

.PHONY: clean
clean: ## remove .venv, caches and build products
	rm -rf .venv .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist site
	find benchmarks extras src tests -name __pycache__ -type d -prune -exec rm -rf {} +
