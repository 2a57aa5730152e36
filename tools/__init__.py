"""Sets the project up, checks it and measures it. Used in a checkout only, never installed.

This file runs on any `python3` that a machine has, so its syntax must be valid for old versions too.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the one place where an old Python still gets as far as a message
    sys.exit(
        "Anamnesis needs Python 3.11 or newer; `%s` is %d.%d.\n"  # noqa: UP031
        "Install a newer one and name it: make PYTHON=python3.12 run"
        % (sys.executable, sys.version_info[0], sys.version_info[1])
    )
