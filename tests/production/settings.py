"""Settings of production that tests of several parts share."""

from typing import Final

LIVE: Final = {"client_key": "live_key", "secret_key": "live_secret", "mode": "P"}
BUILT_IN: Final = {"client_key": "sandbox_key", "secret_key": "sandbox_secret"}
STAGING: Final = {"staging": {"adapter": "simulated"}}
# Nothing listens on port 9.
UNREACHABLE: Final = {
    "adapter": "upstream",
    "base_url": "http://127.0.0.1:9",
    "client_key": "far_key",
    "secret_key": "far_secret",
}
