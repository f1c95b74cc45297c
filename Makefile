# Talla. Bare `make` lists the targets; each sets up what it needs first.
PYTHON ?= python3
BIN    := .venv/bin
STAMP  := .venv/.installed
CODE   := telemetry agent advisor dashboards tests

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

setup: $(STAMP) ## the virtual environment in .venv, as pinned in constraints.txt
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[advisor,dev]'
	@touch $@

run: $(STAMP) ## the main job: check-up, this machine sampled, three simulated servers judged
	PATH="$(CURDIR)/$(BIN):$$PATH" bash demo/main-job

test: $(STAMP) ## the tests that CI runs, on two cores; ARGS=... for pytest
	$(BIN)/python -m pytest -n 2 --dist loadscope -m 'not long and not systemd' $(ARGS)

test-systemd: $(STAMP) ## installed, hung, rebooted, updated and removed in a real systemd (as root; 3 minutes)
	$(BIN)/python -m pytest -m systemd tests/systemd $(ARGS)

check: $(STAMP) ## format, lint, types, layers, generated files current
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(MAKE) --no-print-directory check-generated

fix: $(STAMP) ## format and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Generated files: one line each, GEN.<path> = <arguments of python that print the file>.
GEN.docs/configuration.md = -m tests.docs.configuration
GEN.docs/alert-rules.md = -m agent.alerts.page
GEN.docs/metrics.md = -m agent.metrics_page
GEN.docs/planner.md = -m advisor.planner.points
GEN.docs/profiles.md = -m advisor.profiles.page
GEN.advisor/classifier/table.csv = -m advisor.classifier.generator
GEN.docs/states-cases.md = -m tests.states.awkward
GEN.dashboards/agent-health.json = -m dashboards.generate agent-health
GEN.dashboards/fleet.json = -m dashboards.generate fleet
GEN.dashboards/gpu.json = -m dashboards.generate gpu
GEN.dashboards/right-sizing.json = -m dashboards.generate right-sizing
GEN.dashboards/server.json = -m dashboards.generate server

GENERATED := $(sort $(patsubst GEN.%,%,$(filter GEN.%,$(.VARIABLES))))

regen: $(STAMP) ## write the generated files anew
	@set -e; $(foreach f,$(GENERATED),echo '$f'; mkdir -p $(dir build/regen/$f) $(dir $f); \
	  $(BIN)/python $(GEN.$f) > build/regen/$f; cp build/regen/$f $f;)

check-generated: $(STAMP)
	@set -e; $(foreach f,$(GENERATED),mkdir -p $(dir build/regen/$f); \
	  $(BIN)/python $(GEN.$f) > build/regen/$f; \
	  diff -u $f build/regen/$f || { echo '$f is not current: run make regen' >&2; exit 1; };) \
	echo 'generated files current: $(words $(GENERATED))'

bench: $(STAMP) ## the agent's cost beside its peers, in docs/benchmarks.md (40 minutes; QUICK=1: 3 minutes)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python -m bench --keep build/bench $(if $(QUICK),--quick -o build/benchmarks.md,-o docs/benchmarks.md)

clean: ## remove what was built; .venv stays
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis tests/fakenvml/build
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

include verify.mk
include install.mk

.PHONY: help setup run test test-systemd check fix regen check-generated bench clean
