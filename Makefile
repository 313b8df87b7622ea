# Everything runs in .venv; the first call makes it. Only Python 3.11 or newer has to be there.
# Another Python needs an environment of its own: make test PYTHON=python3.13 VENV=.venv-3.13
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
DIST ?= dist

.DEFAULT_GOAL := help

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

run: $(VENV)/.installed  ## serve the gateway; make run ARGS="--port 9000"
	@$(BIN)/sandbox-sim serve $(ARGS)

wheel: $(BIN)/python  ## build a wheel into dist/, to install into other projects
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(DIST) .

test: $(VENV)/.installed-dev  ## run the tests
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

check: $(VENV)/.installed-dev  ## format, lint, types, import contracts and plain words
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.plain_words

format: $(VENV)/.installed-dev  ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.installed-dev  ## compare the speed with a bare aiohttp handler; prints ratios
	$(BIN)/python -m bench $(ARGS)

bench-peers: $(VENV)/.installed-dev  ## install other programs into .venv-peers and compare them; needs Node and Java
	$(BIN)/python -m bench.peers $(ARGS)

chaos: $(VENV)/.installed-dev  ## kill the server under load and check that nothing is lost; make chaos ARGS="--rounds 5"
	$(BIN)/python -m chaos $(ARGS)

attack: $(VENV)/.installed-dev  ## attack a server, print each figure with its bound; make attack ARGS="--seconds 600"
	$(BIN)/python -m attack $(ARGS)

fuzz: $(VENV)/.installed-dev  ## send random input to every path and reader; make fuzz ARGS="--seconds 600 --seed 1"
	$(BIN)/python -m attack.fuzz $(ARGS)

openapi-test: $(VENV)/.installed $(VENV)-schemathesis/.installed  ## schemathesis against a live server
	.ci/schemathesis $(BIN) $(VENV)-schemathesis/bin

weight: $(VENV)/.installed-dev  ## count the code lines and modules of the product, and the lines of tests
	$(BIN)/python -m tests.weight

walk: $(VENV)/.installed-dev  ## count the files that run for one payment; make walk ARGS=-v names them
	$(BIN)/python -m tests.walk $(ARGS)

coverage: $(VENV)/.installed-dev  ## run the tests, print how much of the product they run
	@rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest -n auto --dist worksteal --timeout=240 $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage json --quiet -o .coverage.json
	@$(BIN)/python -c "import json; of = json.load(open('.coverage.json'))['totals']; \
	    print('lines {percent_statements_covered:.2f} %, branches {percent_branches_covered:.2f} %'.format(**of))"

mutate: $(VENV)/.installed-dev  ## change the rules of money and outcomes, print what no test notices
	$(BIN)/python -m mutate $(ARGS)

screenshots: $(VENV)/.installed-dev  ## write docs/screenshots/ with Chromium
	$(BIN)/python -m tests.demo.screenshots

fidelity: $(VENV)/.installed-dev  ## write docs/fidelity.md from the rules, the code and the tests
	$(BIN)/python -m tests.fidelity --write

clean:  ## remove what make made
	rm -rf $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis dist

# This rule also runs where .venv exists and its Python is gone.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || { \
	    echo "Python 3.11 or newer is needed, and $(PYTHON) is not:" \
	        "name one that is, as in: make $(or $(MAKECMDGOALS),help) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }

# Without a Python these two are always made, because the new environment has neither.
ifneq ($(shell test -e $(BIN)/python && echo there),there)
.PHONY: $(VENV)/.installed $(VENV)/.installed-dev
endif

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	@touch $@ $(VENV)/.installed

# An environment of its own: its pytest plugin would slow down every other run of pytest.
$(VENV)-schemathesis/.installed: $(BIN)/python constraints.txt
	$(BIN)/python -m venv --clear $(VENV)-schemathesis
	$(VENV)-schemathesis/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt schemathesis
	@touch $@

.PHONY: help run wheel test check format bench bench-peers chaos attack fuzz openapi-test weight walk coverage mutate screenshots fidelity clean
