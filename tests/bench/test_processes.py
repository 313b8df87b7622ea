"""The server and its load run on cores of their own."""

import json
import os
import subprocess
import sys

import pytest

_MEASURING = """
import json, os
from bench.processes import LOAD_CORE, pin, started

pin(LOAD_CORE)
with started("-c", "import time; print('ready', flush=True); time.sleep(60)") as server:
    print(json.dumps([sorted(os.sched_getaffinity(pid)) for pid in (0, server.pid)]))
"""


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two cores, and a system that pins processes to them",
)
def test_a_server_does_not_share_the_core_of_its_load() -> None:
    """A child inherits the core of its parent, so the cores are counted before any is pinned."""
    output = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, "-c", _MEASURING], check=True, capture_output=True, timeout=60
    ).stdout
    load, server = json.loads(output)

    assert len(load) == len(server) == 1
    assert load != server
