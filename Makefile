# `make up` needs only Python 3.11 or newer. PYTHON names another interpreter for the virtual environment.

VENV := .venv
PYTHON ?=
# One worker of the tests for each core, two to six, one more for tests that mostly wait, such as those of processes, and
# one that computes when nothing else does (tests/support/scheduling.py). Three that compute on two cores made tests of
# hand-over meet their time limits.
WORKERS := $(shell n=$$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); \
	[ $$n -lt 2 ] && echo 4 || { [ $$n -lt 6 ] && echo $$((n + 2)) || echo 8; })
PYTEST_ARGS ?= -n $(WORKERS) --dist loadgroup
CANDIDATES := $(if $(PYTHON),$(PYTHON),python3.13 python3.12 python3.11 python3.14 python3 python)
IS_NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
INSTALL := $(VENV)/bin/python -m kcoord.stack.install
# Parts of packages that no process imports, or one or two: half of all that could be compiled.
RARE := /(tests?|testing|pip|setuptools|pkg_resources|mypyc?|pygments|fontTools|matplotlib|mpl_toolkits|apprise|redis|wcwidth|prompt_toolkit|pandas|mllib?)/

.PHONY: help up venv test test-all test-pythons selection pytest lint format release bench demo showcase screenshots model mutants differential peers chaos chromium

help:
	@echo "make up       start everything: Postgres, server, Celery worker and beat (Ctrl-C stops it); NODES=4: four servers;"
	@echo "              SPARK=0: without the packages of Spark jobs, which are installed while it runs"
	@echo "make demo     a group at work against the running server; PROTOCOL=consumer for a consumer group, SPARK=1: archive too"
	@echo "make spark    install the packages of Spark jobs"
	@echo "make showcase groups of every state at work, to look at the dashboard with; GROUPS=200 MINUTES=10"
	@echo "make screenshots  the pictures of docs/images, from a showcase; ARGS='--all --into DIR': every page in six ways"
	@echo "make test     lint and the default selection of the tests; FILES='a.py b.sql': what belongs to these files"
	@echo "make test-all lint and all tests; PYTEST_ARGS replaces '$(PYTEST_ARGS)'"
	@echo "make test-pythons  make test with each Python from 3.11 to 3.14 that is there"
	@echo "make lint     ruff, mypy and the import contracts"
	@echo "make format   put the source into ruff's format"
	@echo "make release  build the client's sdist and wheel into dist and check them; publishes nothing"
	@echo "make mutants  change the protocol rules and look for tests that notice; FILES names some of them"
	@echo "make model    check the models of docs/models with spin; QUICK=1 checks the small ones"
	@echo "make bench    measure the data plane; QUICK=1 in three minutes, KAFKA=path beside a broker, SPARK=1, ONLY=a,b JSON=file"
	@echo "make differential  random sequences to a broker of Kafka and to the gateway; KAFKA=path, SEQUENCES=100, SEED=1,"
	@echo "              ARGS=--scenarios: each request in the cases that its rules tell apart, in every version"
	@echo "make peers    the group tests in the packages of sarama and kafka-python"
	@echo "make chaos    kill, freeze and cut off a stack under load, and check what its members were told; MINUTES=3 SEED=7"

up: $(VENV)/.runtime
	@$(if $(NODES),KCOORD_NODES=$(NODES) )exec $(VENV)/bin/python -m kcoord.stack $(if $(filter 0,$(SPARK)),,--install-spark)

demo: $(if $(filter 1,$(SPARK)),spark,$(VENV)/.runtime)
	@exec $(VENV)/bin/python -m kcoord.tools.demo $(if $(PROTOCOL),--group-protocol $(PROTOCOL)) $(if $(filter 1,$(SPARK)),--spark) \
		$(ARGS)

showcase: $(VENV)/.runtime
	@exec $(VENV)/bin/python -m kcoord.tools.showcase $(if $(GROUPS),--groups $(GROUPS)) $(if $(MINUTES),--minutes $(MINUTES)) $(ARGS)

# Writes docs/images again. ARGS=--all takes every page in six ways.
screenshots: $(VENV)/.tests chromium
	@exec $(VENV)/bin/python -m tests.screenshots $(ARGS)

bench: $(VENV)/.tests
	@exec $(VENV)/bin/python -m tests.bench $(if $(QUICK),--quick) $(if $(KAFKA),--kafka $(KAFKA)) $(if $(SPARK),--spark) \
		$(if $(ONLY),--only $(ONLY)) $(if $(JSON),--json $(JSON)) $(ARGS)

differential: $(VENV)/.tests
	@exec $(VENV)/bin/python -m tests.differential --kafka $(or $(KAFKA),download) $(if $(SEQUENCES),--sequences $(SEQUENCES)) \
		$(if $(SEED),--seed $(SEED)) $(ARGS)

peers: $(VENV)/.tests
	@exec $(VENV)/bin/python -m tests.peers

# Needs spin and gcc, and nothing of the virtual environment.
model:
	@QUICK=$(QUICK) STORY=$(STORY) exec docs/models/run.sh

mutants: $(VENV)/.tests
	@exec $(VENV)/bin/python -m tests.mutants $(ARGS) $(FILES)

chaos: $(VENV)/.tests
	@exec $(VENV)/bin/python -m tests.chaos $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(ARGS)

# The tests that are not marked `whole`; the end of the output says which those are and why they are left out.
test: chromium
	@tests/support/beside_lint.sh selection

selection: chromium
	$(if $(FILES),tests=$$($(VENV)/bin/python -m tests.support.belonging $(FILES)) && )\
		$(VENV)/bin/python -m pytest $(PYTEST_ARGS) -m "not whole" $(if $(FILES),$$tests)

test-all: chromium
	@tests/support/beside_lint.sh pytest

pytest: chromium
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS)

# Each in a virtual environment of its own. pyenv's Pythons are found also where they are not on the PATH.
test-pythons:
	@for minor in 11 12 13 14; do \
		ran=no; \
		for python in python3.$$minor $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.$$minor.*/bin/python; do \
			$$python -c '$(IS_NEW_ENOUGH)' 2>/dev/null || continue; \
			$(MAKE) test VENV=.venv-3.$$minor PYTHON=$$python || exit; \
			ran=$$($$python -V); break; \
		done; \
		said="$$said 3.$$minor: $$ran;"; \
	done; echo "make test passed with$$said"

lint: $(VENV)/.tests
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

# The browser of the browser tests, which are skipped if it can be neither found nor installed.
chromium: $(VENV)/.tests
	@$(VENV)/bin/python -m tests.support.chromium

format: $(VENV)/.tests
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

release: $(VENV)/.tests
	@$(VENV)/bin/python -m tests.support.release

venv: $(VENV)/.tests

spark: $(VENV)/.runtime
	@$(INSTALL) spark

# The stamps are newer than the requirements they were made from, so a second start installs nothing.
$(VENV)/.runtime: deploy/requirements-service.txt | $(VENV)/bin/python
	@echo "installing deploy/requirements-service.txt into $(VENV)"
	@$(INSTALL) service
	@touch $@

$(VENV)/.tests: tests/requirements.txt requirements.txt $(wildcard deploy/requirements-*.txt) | $(VENV)/bin/python
	@echo "installing tests/requirements.txt into $(VENV)"
	@$(INSTALL) tests
	@$(VENV)/bin/python -m compileall -qq -j 0 -x '$(RARE)' $(VENV)/lib || true # for hundreds of processes; not all files are for this Python
	@touch $@ $(VENV)/.runtime

$(VENV)/bin/python:
	@for candidate in $(CANDIDATES); do \
		if $$candidate -c '$(IS_NEW_ENOUGH)' 2>/dev/null; then \
			echo "making $(VENV) with $$($$candidate --version)"; exec $$candidate -m venv $(VENV); \
		fi; \
		found="$$found$$($$candidate -c 'import sys; print(" %s (%d.%d)" % ((sys.executable,) + sys.version_info[:2]))' 2>/dev/null)"; \
	done; \
	echo "kcoord needs Python 3.11 or newer; found:$${found:- none}. Install one, or name it: make up PYTHON=/path/to/python3.12" >&2; \
	exit 2
