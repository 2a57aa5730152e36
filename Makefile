# Needs only python3 (3.11 or newer, with venv) and make; everything else is found or fetched.

PYTHON ?= python3
BIN := .venv/bin
QUICK := tests/unit tests/wire tests/architecture
export PYTHONUTF8 := 1
unexport PYTHONDONTWRITEBYTECODE  # set in many container images; every process would compile everything anew

.PHONY: help setup ready run livekit letta test check quick ledger lint bench soak conversations requirements pins wheel clean

help:
	@echo "make run            set up what running needs, then open the house (ARGS='--port 0' …)"
	@echo "make livekit        the same, connected to a LiveKit server of its own"
	@echo "make letta          the same, connected to a Letta server of its own"
	@echo "make test           set up everything, then every check and every test"
	@echo "make check          the linters and the quick tests, in under a minute"
	@echo "make setup          fetch all that run and test need, to work offline afterwards"
	@echo "make bench          measure the project against bare libraries"
	@echo "make soak           the longer proofs"
	@echo "make conversations  write the kept conversations anew, to read what changed"
	@echo "make requirements   the requirements that no test shows yet"
	@echo "make pins           choose new versions of the dependencies"
	@echo "make wheel          what is installed elsewhere, with the page inside, in dist/"
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
	@$(BIN)/pytest -n 4 --dist worksteal  # more than there are processors, for many tests wait; who is done takes from the others
	@$(BIN)/python -m tools.ledger

check: ready lint
	@$(MAKE) --no-print-directory -j 2 quick ledger

quick:
	@$(BIN)/pytest -q -n 2 --dist loadfile --hypothesis-profile quick $(QUICK)

ledger:
	@$(BIN)/python -m tools.ledger

lint: ready
	@$(BIN)/python -m tools.lint

bench: setup
	@$(BIN)/python -m benchmarks

soak: setup
	@$(BIN)/pytest -n 2 -m soak --timeout 3600

conversations: ready
	@$(BIN)/python -m tests.talks

requirements: ready
	@$(BIN)/python -m tools.ledger --missing

pins: ready
	@$(BIN)/python -m tools.pins

wheel:
	@$(PYTHON) -m tools.bootstrap --run
	@$(BIN)/python -m hatchling build -t wheel

clean:
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build console/dist console/node_modules
