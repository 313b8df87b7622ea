"""The health check of an `http_json` network."""

import pytest

from sandbox_sim.testing.network_contract import HttpReply
from tests.networks.http_json.api import opened

pytestmark = pytest.mark.decision("D39")

BASIC = {"auth": "basic", "auth_user": "u", "auth_secret": "secret"}


@pytest.mark.parametrize("status", [200, 204, 302, 400, 405, 500])
async def test_a_network_that_answers_is_healthy(status: int) -> None:
    async with opened(HttpReply(status), **BASIC) as api:
        assert await api.network.health() == (True, f"answers with HTTP {status}")

        (came,) = api.came
        assert (came.method, came.path, came.body) == ("HEAD", "/", b"")
        assert came.headers["authorization"] == "Basic dTpzZWNyZXQ="


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "HTTP 401: the network refuses the credentials; correct auth_user and auth_s"),
        (403, "correct auth_user and auth_secret, or ask the network to add the address of this"),
        (404, "correct base_url, or set health_path to a path that the API has"),
        (502, "HTTP 502: the network is out of service; try again"),
        (503, "HTTP 503: the network is out of service; try again"),
        (504, "HTTP 504: the network is out of service; try again"),
    ],
)
async def test_a_network_that_rejects_the_path_or_the_key_or_is_down_is_not_healthy(
    status: int, words: str
) -> None:
    async with opened(HttpReply(status), **BASIC) as api:
        health = await api.network.health()

        assert not health.ok
        assert words in health.detail


async def test_the_path_of_the_health_check_is_a_setting() -> None:
    async with opened(HttpReply(200), health_path="/v1/banks?perPage=1") as api:
        assert (await api.network.health()).ok
        assert api.came[0].path == "/v1/banks?perPage=1"
