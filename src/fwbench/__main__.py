"""``python -m fwbench``: the command line, in an environment whose scripts are not on the path."""

import sys

from fwbench.cli import main

sys.exit(main())
