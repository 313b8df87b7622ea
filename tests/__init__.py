"""The tests keep compiled code: otherwise each of a hundred processes compiles it again.

pytest imports this package before `tests/conftest.py`, so the imports of that file are kept too.
"""

import os
import sys

sys.dont_write_bytecode = False

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
