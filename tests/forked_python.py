"""Runs a Python program in a process of the fork server: a client for shells and other languages.

`python -IS tests/forked_python.py SOCKET WORD...` does what `python WORD...` does: same standard
streams, working directory and environment. It passes SIGTERM and SIGINT on, and its exit code is
that of the program. It imports little, because it must start fast.
"""

import os
import signal
import socket
import struct
import sys
from json import dumps


def main(address: str, *words: str) -> int:
    """Run the program. Returns its exit code."""
    number = struct.Struct("i")
    request = {"words": words, "cwd": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as states:
        states.connect(address)
        socket.send_fds(states, [dumps(request).encode()], [0, 1, 2])
        (pid,) = number.unpack(states.recv(number.size))

        def pass_on(sent: int, _: object) -> None:
            try:
                os.kill(pid, sent)
            except ProcessLookupError:  # it has just ended
                return

        signal.signal(signal.SIGTERM, pass_on)
        signal.signal(signal.SIGINT, pass_on)
        code: int = number.unpack(states.recv(number.size))[0]
    return code if code >= 0 else 128 - code  # as a shell shows an end by a signal


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
