"""``python -m phloem`` is the ``phloem`` command."""

import sys

from phloem.cli import main

sys.exit(main())
