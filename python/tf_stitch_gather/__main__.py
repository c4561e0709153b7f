"""`python -m tf_stitch_gather`: the command `tf-stitch-gather`, where it is not on PATH."""

import sys

from tf_stitch_gather._cli import main

sys.exit(main())
