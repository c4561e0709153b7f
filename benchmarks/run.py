"""Entry of `make bench`; `python benchmarks/run.py --help` lists the options."""

import sys
from pathlib import Path

# Run by its path, Python looks for modules in this folder and not in the one above.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
