"""`sandbox-sim serve`: the process, its workers, and the signals that stop it."""

import os

# pydantic would look for plugins in the metadata of every installed package before it builds a
# model, which takes longer than to build all of them.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
