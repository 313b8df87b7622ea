"""The fake SMSC as the other side of the contract suite."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from sandbox_sim.networks.smpp.adapter import Smpp
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import Network, NetworkEnvironment
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.reports import Outcome
from sandbox_sim.testing.network_contract import Address, Decided, Fault, Peer, Signature, Submitted
from sandbox_sim.testing.network_contract.http_peer import closed_address, server_without_tls
from sandbox_sim.testing.network_contract.peer import TEXT
from tests.networks.smpp.fake_smsc import RINVDSTADR, Broken, FakeSmsc, Reply
from tests.networks.smpp.network import PASSWORD, settings

REPLIES: Final[dict[Fault, Reply]] = {
    Fault.CLOSE_BEFORE_READ: Broken.CLOSE_UNREAD,
    Fault.CLOSE_AFTER_READ: Broken.CLOSE,
    Fault.RESET_AFTER_READ: Broken.RESET,
    Fault.HALF_ANSWER: Broken.HALF_ANSWER,
    Fault.CLOSE_AFTER_ANSWER: Broken.ANSWER_AND_CLOSE,
    Fault.SILENCE: Broken.SILENCE,
    Fault.UNKNOWN_WORD: 0x412,  # a status of a vendor
}

STATES: Final = {Outcome.SUCCEEDED: "DELIVRD", Outcome.FAILED: "UNDELIV"}


class SmppPeer:
    """A `Peer` and `NotifyingPeer` made of the fake SMSC. Message ids count the submits."""

    faults = frozenset(REPLIES)
    addresses = frozenset(Address)
    secrets = (PASSWORD,)
    large_operation = Operation.SMS
    strays = 0
    tokens = None

    def __init__(self, smsc: FakeSmsc, tls_address: str, adapter: type[Smpp]) -> None:
        self._smsc = smsc
        self._tls_address = tls_address
        self._adapter = adapter

    @property
    def submits(self) -> Sequence[Submitted]:
        return [
            Submitted(
                each.short_message.decode().removeprefix(TEXT),
                None,
                operations=frozenset({Operation.SMS}),
                party=each.destination_addr,
            )
            for each in self._smsc.submits
        ]

    @property
    def connections(self) -> int:
        return len(self._smsc.submits)

    @property
    def silences(self) -> int:
        return self._smsc.silences

    def expire_tokens(self) -> None:
        raise NotImplementedError

    def network(self, environment: NetworkEnvironment, address: Address) -> Network:
        port = {
            Address.SERVING: self._smsc.port,
            Address.CLOSED: urlsplit(closed_address()).port,
            Address.BROKEN_TLS: urlsplit(self._tls_address).port,
        }[address]
        tls = address is Address.BROKEN_TLS
        return self._adapter(settings(port or 0, tls=tls), environment)

    def misbehave(self, fault: Fault) -> None:
        self._smsc.replies.append(REPLIES[fault])

    def decide(self, decided: Decided) -> None:
        raise NotImplementedError

    def decide_at_once(self, decided: Decided) -> bool:
        if decided.outcome is not Outcome.REFUSED:
            return False
        self._smsc.replies.append(RINVDSTADR)
        return True

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        return None

    async def notify(self, decided: Decided) -> bool:
        references = [each.reference for each in self.submits]
        message_id = references.index(decided.request.reference) + 1
        return await self._smsc.receipt(str(message_id), STATES[decided.outcome]) == 0


@asynccontextmanager
async def smpp_peer(adapter: type[Smpp] = Smpp) -> AsyncIterator[Peer]:
    """The fake SMSC, running inside of the context."""
    async with server_without_tls() as tls_address, FakeSmsc().running() as smsc:
        yield SmppPeer(smsc, tls_address, adapter)
