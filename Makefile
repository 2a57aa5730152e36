# Needs only python3 (3.11 or newer, with venv) and make; everything else is found or fetched.

PYTHON ?= python3
BIN := .venv/bin
QUICK := tests/unit tests/wire tests/architecture
export PYTHONUTF8 := 1
unexport PYTHONDONTWRITEBYTECODE  # many container images set it; every process would then compile every module

.PHONY: help setup ready run livekit letta test check quick count lint bench soak conversations picture requirements pins wheel clean

help:
	@echo "make run            set up what running needs, then start the server (ARGS='--port 0' …)"
	@echo "make livekit        the same, with a LiveKit server started for it"
	@echo "make letta          the same, with a Letta server started for it"
	@echo "make test           set up everything, then run every linter and every test"
	@echo "make check          run the linters and the quick tests, in under a minute"
	@echo "make setup          fetch everything that run and test need, to work offline afterwards"
	@echo "make bench          measure the project against bare libraries"
	@echo "make soak           run the longer tests"
	@echo "make conversations  write the kept conversations again, to read what changed"
	@echo "make picture        take the pictures of the page in the documents again"
	@echo "make requirements   list the requirements that no test covers yet"
	@echo "make pins           choose new versions of the dependencies"
	@echo "make wheel          build a wheel, with the page inside, in dist/"
	@echo "make clean          remove what the commands above made in this checkout"

setup:
	@$(PYTHON) -m tools.bootstrap --tests

ready:
	@$(PYTHON) -m tools.bootstrap

run:
	@$(PYTHON) -m tools.bootstrap --run
	@$(BIN)/anamnesis serve $(ARGS)

livekit:
	@$(PYTHON) -m tools.bootstrap --run
	@$(BIN)/python -m tools.livekit $(ARGS)

letta:
	@$(PYTHON) -m tools.bootstrap --run
	@$(BIN)/python -m tools.letta $(ARGS)

test: setup lint
	@$(BIN)/pytest -n 4 --dist worksteal  # more workers than processors, because many tests wait; an idle worker takes tests from another
	@$(BIN)/python -m tools.requirements

check: ready lint
	@$(MAKE) --no-print-directory -j 2 quick count

quick:
	@$(BIN)/pytest -q -n 2 --dist loadfile --hypothesis-profile quick $(QUICK)

count:
	@$(BIN)/python -m tools.requirements

lint: ready
	@$(BIN)/python -m tools.lint

bench: setup
	@$(BIN)/python -m benchmarks

soak: setup
	@$(BIN)/pytest -n 2 -m 'soak or hypothesis' --hypothesis-profile search --timeout 3600

conversations: ready
	@$(BIN)/python -m tests.support.brains.kept_conversations

picture: setup
	@$(BIN)/python -m tools.picture

requirements: ready
	@$(BIN)/python -m tools.requirements --missing

pins: ready
	@$(BIN)/python -m tools.pins

wheel:
	@$(PYTHON) -m tools.bootstrap --run
	@$(BIN)/python -m hatchling build -t wheel

clean:
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build console/dist console/node_modules
