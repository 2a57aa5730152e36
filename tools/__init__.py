"""What sets the project up, checks it and measures it; needed in a checkout, never installed.

The first lines run on whatever `python3` a machine has, so they must be readable to an old one.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the one place where an older Python can still be told what to do
    sys.exit(
        "Anamnesis needs Python 3.11 or newer; `%s` is %d.%d.\n"  # noqa: UP031
        "Install a newer one and name it: make PYTHON=python3.12 run"
        % (sys.executable, sys.version_info[0], sys.version_info[1])
    )
