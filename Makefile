# Headscope: `make demo` to see it, `make test` to trust it. Needs Python 3.11 or newer, and nothing else.
# Another Python: `make test PYTHON=/path/to/python3.12`. More test processes: `make test WORKERS=8`.

PYTHON ?=
WORKERS ?= 2
export PYTHON WORKERS

.DEFAULT_GOAL := help
.PHONY: help demo test quick check families hostile audit clean

help:
	@echo "make demo    set up .venv, build the page and open the workbench"
	@echo "make test    set up .venv, then run every check and every test"
	@echo "make quick   the unit tests alone"
	@echo "make families  every model type of Transformers, built tiny and compared (ten minutes); writes docs/models.md"
	@echo "make hostile  the whole trial of damaged files, killed writers and wrong calls (twenty minutes)"
	@echo "make audit    are the packages, here and in the index, those of constraints.lock"
	@echo "make check   format, lint, types and layers alone, of Python and of the page"
	@echo "make clean   remove .venv and everything that was built"

demo:
	@sh scripts/setup serve
	@.venv/bin/python scripts/web
	@.venv/bin/headscope serve

test: check
	@sh scripts/chromium install >/dev/null || true
	@sh scripts/test --durations=15 --durations-min=1

quick:
	@sh scripts/setup dev
	@.venv/bin/python scripts/web
	@sh scripts/test src tests/unit

check:
	@sh scripts/setup dev
	@.venv/bin/python scripts/web
	@sh scripts/check

families:
	@sh scripts/setup dev
	@OMP_NUM_THREADS=1 .venv/bin/python tests/families.py --workers $(WORKERS)

hostile:
	@sh scripts/setup dev
	@.venv/bin/python scripts/web
	@HEADSCOPE_HOSTILE=whole sh scripts/test tests/hostile

audit:
	@sh scripts/setup dev
	@.venv/bin/python scripts/audit

clean:
	@rm -rf .venv .pytest_cache .ruff_cache .import_linter_cache .pictures build dist src/headscope/static web/node_modules
	@find src tests training benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
