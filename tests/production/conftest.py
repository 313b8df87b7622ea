"""The desk that most tests of production mode begin with."""

import pytest

from tests.production.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()
