"""The orchestrator: receives messages, stores and answers them, and reports every use of memory."""

import os

__version__ = "0.1.0"

# numpy's OpenBLAS starts a thread per core, and each keeps its core busy for a while after every product of
# matrices. Ours take 0.2 ms, so those threads took half of a turn's CPU time. Read when numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
