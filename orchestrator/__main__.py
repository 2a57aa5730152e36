"""`python -m orchestrator` is `anamnesis`."""

from orchestrator.cli import main

main()
