# make quickstart   everything from nothing to a trained, registered model and the board
# make test         the tests of every day, at most 15 minutes; make test-full: all, resumable
# make mlflow-full-venv  the same with torch, transformers and Lightning (2 GB)
# make mlflow-venv  MLflow's own clients (newest and 3.6) for the tests that run them
#
# Variables: PYTHON (python3), VENV (.venv), TORCH_INDEX (index to take torch from; default: the CPU wheel where no
# accelerator is found), TRACKBED_HOME (~/.trackbed), TRACKBED_WEB (skip | system), ARGS (options of quickstart), T (tests), JOBS (3: processes of make test).
# pip's own settings (pip.conf, PIP_INDEX_URL, …) are honoured.

PYTHON ?= python3
VENV ?= .venv
export VENV TORCH_INDEX
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -q
JOBS ?= 3
FAST := not slow and not gpu and not multi_gpu

.PHONY: quickstart install dev check format test test-full web clean help verify-gpu schema mlflow-venv mlflow-full-venv bench-storage

help:
	@sed -n '1,10s/^# \{0,1\}//p' Makefile

quickstart: install
	@$(BIN)/trackbed quickstart $(ARGS)

install:
	@$(PYTHON) scripts/install.py quickstart

dev:
	@$(PYTHON) scripts/install.py dev

format: dev
	$(BIN)/ruff format src tests scripts bench
	$(BIN)/ruff check --fix src tests scripts bench
	$(BIN)/python scripts/zh.py src/trackbed/base/messages/zh/*.json web/src/i18n/zh.json

check: dev
	$(BIN)/ruff format --check src tests scripts bench
	$(BIN)/ruff check src tests scripts bench
	$(BIN)/lint-imports
	$(BIN)/pyright
	$(BIN)/python scripts/web.py check
	$(PYTEST) tests/unit tests/architecture tests/docs -m "$(FAST)"

test: dev
	@sh scripts/chromium.sh
	$(BIN)/python scripts/web.py check
	$(PYTEST) tests -m "$(FAST)" -n $(JOBS) --dist loadfile

test-full: dev
	@sh scripts/chromium.sh
	@$(BIN)/python scripts/full.py

mlflow-venv:
	@for want in newest: 3.6:==3.6.*; do \
	  place=.mlflow-venv/$${want%%:*}; \
	  $(PYTHON) -m venv $$place && $$place/bin/pip install -q "mlflow$${want#*:}" scikit-learn || exit 1; \
	done

mlflow-full-venv:
	@$(PYTHON) -m venv .mlflow-venv/full && \
	.mlflow-venv/full/bin/pip install -q $$(grep ^torch== constraints.txt) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) && \
	.mlflow-venv/full/bin/pip install -q $$(grep ^torch== constraints.txt) mlflow scikit-learn transformers accelerate lightning

test-%: dev
	$(PYTEST) $(wildcard tests/*/$*) $(T)

# DVC in an environment of its own: python3 -m venv X && X/bin/pip install dvc; make bench-storage DVC=X/bin/dvc
bench-storage: dev
	$(BIN)/python bench/storage.py --dvc $(DVC) $(ARGS)

verify-gpu: dev
	$(PYTEST) tests -m "gpu"

web: dev
	$(BIN)/python scripts/web.py build

schema: install
	$(BIN)/python -m trackbed.workflow.page
	$(BIN)/python -m trackbed.cli.page

clean:
	rm -rf $(VENV) build dist src/*.egg-info src/trackbed/server/static web/node_modules web/dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
