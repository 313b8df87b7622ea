"""How a phone gets to the handset pages where a control token is set: by a code that works once.

A person who is logged in shows the code as a QR code. The phone exchanges it for a cookie that
opens the handset pages and nothing else.
"""

from typing import Final

from sandbox_sim.gateway.ports import Clock, Ids

# Seconds of real time.
CODE_WORKS_FOR_S: Final = 600.0
_MOST_CODES: Final = 200


class HandsetCodes:
    """Codes that were shown and not used yet.

    They are kept in this process only. Where several serve one state, another process could be the
    one that a phone reaches, so there a phone logs in with the token in place of a code.
    """

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids
        self._expiry: dict[str, float] = {}

    def new(self) -> str:
        """A code that works once, within ten minutes."""
        now = self._clock.monotonic()
        valid = [(code, expiry) for code, expiry in self._expiry.items() if expiry > now]
        self._expiry = dict(valid[-_MOST_CODES + 1 :])
        code = self._ids.token()
        self._expiry[code] = now + CODE_WORKS_FOR_S
        return code

    def use(self, code: str) -> bool:
        """Whether the code works; from now on it does not."""
        return self._expiry.pop(code, 0.0) > self._clock.monotonic()
