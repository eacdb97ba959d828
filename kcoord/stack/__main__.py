"""`python -m kcoord.stack`. Written so that an old Python can still parse it and report what is wrong."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the check is for users with an older interpreter
    sys.stderr.write(
        "kcoord: Python 3.11 or newer is required, this is %d.%d (%s); remove .venv and run "  # noqa: UP031
        "`make up PYTHON=/path/to/python3.12`\n" % (sys.version_info[0], sys.version_info[1], sys.executable)
    )
    sys.exit(2)

from kcoord.stack.cli import main

sys.exit(main())
