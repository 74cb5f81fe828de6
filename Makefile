# `make demo` and `make test` set everything up on a fresh machine: a virtual environment in .venv, pinned by constraints.txt.
PYTHON ?= python3
BIN := .venv/bin

# What pip gets beside that. On Linux the usual torch brings about 5 GB of libraries for GPUs; without a GPU the CPU build
# is enough. PyTorch's page on installing shows the address of its index after you choose CPU:
#     make demo PIP_OPTIONS="--extra-index-url ADDRESS"
PIP_OPTIONS ?=

# Interpreters that `make resolve` asks and `make release-check` installs with, by name or by path.
PYTHONS ?= python3.10 python3.11 python3.12 python3.13 python3.14

.PHONY: demo test cluster-test lint docs docs-test resolve release-check skeptic fuzz chromium load soak clean

demo: .venv/demo
	$(BIN)/python examples/demo.py

test: .venv/test
	$(BIN)/python -m pytest

# Many tables on a Ray and a Dask cluster of two workers each, which are large packages: `make test` skips these tests.
cluster-test: .venv/test .venv/cluster
	$(BIN)/python -m pytest tests/test_clusters.py

docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The built site in a headless browser, and the results of the tutorials.
docs-test: .venv/test docs
	DOCS_SITE=site $(BIN)/python -m pytest tests/test_site.py tests/test_tutorials.py

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Can pip find versions for the demo, the tests and the documents on every Python that we support?
resolve:
	.ci/resolve $(PYTHONS)

# Everything that can be asked before a release: versions, the frozen suite, packages, an installation from nothing, the demo,
# the documents. RELEASE=--final refuses a development version, or one without held-out; STEPS="versions documents" asks less.
RELEASE ?=
STEPS ?=
SEED ?= 0
release-check: .venv/docs
	PIP_OPTIONS="$(PIP_OPTIONS)" $(BIN)/python .ci/release_check.py $(addprefix --python ,$(PYTHONS)) $(RELEASE) $(STEPS)

# Five datasets of six rows, drawn with SEED, for five methods of the benchmark: do they still agree with the records?
skeptic: .venv/test
	$(BIN)/python docs/tools/skeptic.py --seed $(SEED)

# Twenty thousand bad inputs, new ones with every SEED, and a table by surface. `make test` runs a thousand.
fuzz: .venv/test
	$(BIN)/python tests/bad_inputs.py --cases 20000 --seed $(SEED)

# Debian's browser, for the tests of the page, which are skipped without one. Where nobody may install it, nothing happens.
chromium:
	command -v chromium || command -v chromium-browser || (apt-get update && apt-get install --yes --no-install-recommends chromium) \
		|| echo "No browser could be installed: the tests of the page in a browser will be skipped."

# Twenty browsers at once with a table of 1000 x 50 each.
load: .venv/test
	$(BIN)/python docs/tools/page_load.py

# A thousand sessions on the page one after the other: its memory stays flat.
soak: .venv/test
	$(BIN)/python docs/tools/page_soak.py

clean:
	rm -rf .venv build dist demo site

# Each needs other packages: the demo few of them.
.venv/demo: PACKAGES = --editable .
.venv/test: PACKAGES = --editable . --editable lab --group test --group lab/pyproject.toml:test
.venv/docs: PACKAGES = --editable . --editable lab --group docs
.venv/cluster: PACKAGES = --editable ".[cluster]"
.venv/demo .venv/test .venv/docs .venv/cluster: pyproject.toml lab/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"  # the first with dependency groups
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt $(PIP_OPTIONS) $(PACKAGES)
	touch $@
