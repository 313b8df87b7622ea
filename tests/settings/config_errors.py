"""The error message of a configuration that is refused."""

from pathlib import Path

import pytest

from sandbox_sim.settings.loading import ConfigError, load


def config_error(file: Path | None = None, /, **flags: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(file, flags)
    return str(caught.value)
