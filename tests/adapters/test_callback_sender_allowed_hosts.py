"""The sender never connects to a denied address, also if a lookup of a host name gives it."""

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from urllib.parse import urlsplit

import pytest

from sandbox_sim.adapters.callback_sender import HttpCallbackSender
from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.callbacks.destinations import CallbackHosts
from sandbox_sim.records.callbacks import FailureKind, verdict
from sandbox_sim.testing.network_contract.http_peer import closed_address
from tests.adapters.conftest import FakeDns, Receiver, http, post

HOME = "127.0.0.1"
ELSEWHERE = "127.0.0.2"
HOME_6 = "::1"
LOOPBACK = ["127.0.0.0/8", "::1"]
# Hosts of a URL that the machine's own lookup resolves to a loopback address, and this address.
UNUSUAL = {
    "0.0.0.0": HOME,
    "0x0": HOME,
    "0x7f.1": HOME,
    "0x7f000001": HOME,
    "[::ffff:0.0.0.0]": HOME,
    "[::ffff:127.0.0.1]": HOME,
    "[::ffff:7f00:1]": HOME,
    "①②⑦.0.0.1": HOME,
    "127。0。0。1": HOME,
    "[::]": HOME_6,
    "[0:0:0:0:0:0:0:0]": HOME_6,
    "[::0.0.0.1]": HOME_6,
}
# Addresses that a name may resolve to, and the loopback address that they count as.
UNUSUAL_RESOLVED = {"0.0.0.0": HOME, "::": HOME_6, "::ffff:127.0.0.1": HOME, "::ffff:0.0.0.0": HOME}


class Machines:
    """Addresses of this machine with a receiver on each. All receivers have the same ports."""

    def __init__(self, *addresses: str) -> None:
        answer = http("200 OK", b"", "Connection: close")
        self.at = {address: Receiver(answer) for address in addresses}
        self._servers: list[asyncio.Server] = []

    async def listen(self) -> int:
        """Listen on one more port, the same at each address, and return it."""
        port = 0
        for address, receiver in self.at.items():
            try:
                server = await asyncio.start_server(receiver.serve, address, port)
            except OSError as error:
                if error.errno in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
                    pytest.skip(f"{address} is not an address of this machine")
                raise
            self._servers.append(server)
            port = server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for receiver in self.at.values():
            for writer in receiver.writers:
                writer.transport.abort()
        await asyncio.sleep(0)

    @property
    def called(self) -> list[str]:
        """The addresses that received a connection."""
        return [address for address, receiver in self.at.items() if receiver.writers]


@pytest.fixture
async def machines() -> AsyncIterator[Machines]:
    machines = Machines(HOME, ELSEWHERE)
    yield machines
    await machines.close()


@pytest.fixture
async def loopback() -> AsyncIterator[Machines]:
    """A receiver at the loopback address of IPv4 and one at that of IPv6."""
    machines = Machines(HOME, HOME_6)
    yield machines
    await machines.close()


StartSender = Callable[..., Awaitable[HttpCallbackSender]]


@pytest.fixture
async def start_sender() -> AsyncIterator[StartSender]:
    senders: list[HttpCallbackSender] = []

    async def start(dns: FakeDns | None = None, **lists: Sequence[str]) -> HttpCallbackSender:
        hosts = CallbackHosts.parse(lists.get("allow", ()), lists.get("deny", ()))
        sender = HttpCallbackSender(VirtualClock(), hosts, dns)
        senders.append(sender)
        return await sender.__aenter__()

    yield start
    for sender in senders:
        await sender.__aexit__()


async def test_the_verdict_on_a_denied_address_names_the_setting_and_the_host(
    start_sender: StartSender, machines: Machines
) -> None:
    says = "the setting callback_hosts does not let callbacks go to"
    sender = await start_sender(FakeDns([HOME, ELSEWHERE]), deny=["127.0.0.0/8"])
    port = await machines.listen()
    hosts = {HOME: HOME, "shop.example": f"shop.example ({HOME}, {ELSEWHERE})"}

    for host, shown in hosts.items():
        answer = await post(sender, f"http://{host}:{port}/callback")

        assert (answer.status_code, answer.failure_kind) == (None, FailureKind.SETTING)
        assert verdict(answer) == f"not sent: {says} {shown}"
    assert machines.called == []


@pytest.mark.parametrize(
    "lists",
    [{"deny": ["*.example"]}, {"allow": ["*.test"]}, {"allow": ["*"], "deny": ["shop.example"]}],
)
async def test_a_host_refused_by_its_name_is_not_looked_up(
    start_sender: StartSender, lists: dict[str, list[str]]
) -> None:
    dns = FakeDns([HOME])
    sender = await start_sender(dns, **lists)

    answer = await post(sender, "http://shop.example/callback")

    assert answer.problem == (
        "the setting callback_hosts does not let callbacks go to shop.example"
    )
    assert dns.asked == []


@pytest.mark.parametrize(
    ("addresses", "lists"),
    [
        ([HOME], {}),
        ([HOME], {"allow": ["shop.example"]}),
        ([HOME], {"allow": [HOME]}),
        ([HOME], {"deny": [ELSEWHERE]}),
        ([HOME], {"allow": ["*"], "deny": [ELSEWHERE]}),
        ([HOME, ELSEWHERE], {"deny": [ELSEWHERE]}),
        ([ELSEWHERE, HOME], {"deny": [ELSEWHERE]}),
    ],
)
async def test_a_callback_goes_only_to_allowed_addresses_of_its_host(
    start_sender: StartSender, machines: Machines, addresses: list[str], lists: dict[str, list[str]]
) -> None:
    sender = await start_sender(FakeDns(addresses), **lists)

    answer = await post(sender, f"http://shop.example:{await machines.listen()}/callback")

    assert (answer.status_code, answer.failure_kind) == (200, None)
    assert machines.called == [HOME]


@pytest.mark.parametrize(
    "lists", [{"deny": [ELSEWHERE]}, {"allow": [HOME]}, {"allow": ["*"], "deny": [ELSEWHERE]}]
)
async def test_a_host_is_not_called_at_a_denied_address_that_a_later_lookup_gives(
    start_sender: StartSender, machines: Machines, lists: dict[str, list[str]]
) -> None:
    """DNS rebinding: the first lookup gives an allowed address, and the next one does not."""
    dns = FakeDns([HOME], [ELSEWHERE])
    sender = await start_sender(dns, **lists)

    first = await post(sender, f"http://shop.example:{await machines.listen()}/callback")
    assert dns.asked == ["shop.example"]
    # A new port, so that the sender can use neither an open connection nor a cached lookup.
    second = await post(sender, f"http://shop.example:{await machines.listen()}/callback")

    assert dns.asked == ["shop.example", "shop.example"]
    assert (first.status_code, second.status_code) == (200, None)
    assert second.failure_kind is FailureKind.SETTING
    assert machines.called == [HOME]


async def test_each_spelling_of_a_denied_address_is_refused(
    start_sender: StartSender, machines: Machines
) -> None:
    """The machine's own lookup resolves these hosts to loopback addresses, as it does UNUSUAL."""
    sender, port = await start_sender(deny=LOOPBACK), await machines.listen()

    for host in (
        *("127.1", "2130706433", "0177.0.0.1", "127.0.0.1.", "127.000.000.001", "127.0.1"),
        *("localhost", "LOCALHOST", "localhost."),
    ):
        answer = await post(sender, f"http://{host}:{port}/callback")
        assert answer.status_code is None, host
    assert machines.called == []


@pytest.mark.decision("D37")
@pytest.mark.parametrize(
    ("host", "resolved", "target"),
    [
        *((host, None, target) for host, target in UNUSUAL.items()),
        *(("shop.example", each, target) for each, target in UNUSUAL_RESOLVED.items()),
    ],
)
async def test_an_unusual_host_or_lookup_counts_as_the_address_that_is_connected_to(
    start_sender: StartSender, loopback: Machines, host: str, resolved: str | None, target: str
) -> None:
    """Without `resolved` the machine itself looks the host up; the receivers show the result."""
    url = f"http://{host}:{await loopback.listen()}/callback"
    dns = None if resolved is None else FakeDns([resolved])

    for allow, deny in ([], [target]), (["192.0.2.0/24", "2001:db8::/32"], []):
        refused = await post(await start_sender(dns, allow=allow, deny=deny), url)
        assert refused.failure_kind is FailureKind.SETTING
    assert loopback.called == []

    for allow, deny in ([target], []), ([], ["192.0.2.0/24"]):
        called = await post(await start_sender(dns, allow=allow, deny=deny), url)
        assert called.status_code == 200
    assert loopback.called == [target]


async def test_a_refused_connection_to_an_allowed_address_is_reported(
    start_sender: StartSender,
) -> None:
    port = urlsplit(closed_address()).port
    sender = await start_sender(FakeDns([ELSEWHERE, HOME]), deny=[ELSEWHERE])

    answer = await post(sender, f"http://shop.example:{port}/callback")

    assert answer.failure_kind is FailureKind.CONNECTION
    assert answer.problem is not None
    assert answer.problem.startswith(f"no connection to shop.example:{port}: ")


async def test_concurrent_callbacks_are_checked_separately(
    start_sender: StartSender, machines: Machines
) -> None:
    sender = await start_sender(deny=[ELSEWHERE])
    port = await machines.listen()
    urls = [f"http://{address}:{port}/callback" for address in (HOME, ELSEWHERE)] * 10

    answers = await asyncio.gather(*(post(sender, url) for url in urls))

    assert [answer.status_code for answer in answers] == [200, None] * 10
    assert [answer.failure_kind for answer in answers] == [None, FailureKind.SETTING] * 10
    assert machines.called == [HOME]
