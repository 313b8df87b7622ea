"""The pytest plugin: `sandbox_gateway`, `make_sandbox_gateway`, and the report of a failed test.

pytest loads this module in every test run where the package is installed, so it imports nothing of
the package before a fixture is used.
"""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sandbox_sim import SandboxGateway
    from sandbox_sim.testing.remote import RemoteGateway
    from sandbox_sim.testing.service_gateway import ServiceGateway

# The gateway of a test, kept here because `funcargs` lacks it after `getfixturevalue`.
_OF_THE_TEST = pytest.StashKey["ServiceGateway"]()


@pytest.fixture(scope="session")
def _remote_sandbox_gateway() -> "RemoteGateway | None":
    """The gateway elsewhere that `SANDBOX_SIM_URL` names; None where the variable is not set."""
    from sandbox_sim.testing.remote import RemoteGateway  # noqa: PLC0415 -- not before it is needed

    return RemoteGateway.of_environment()


@pytest.fixture(scope="session")
def make_sandbox_gateway(
    _remote_sandbox_gateway: "RemoteGateway | None",
) -> Iterator[Callable[..., "SandboxGateway"]]:
    """Start a gateway with settings, such as `make_sandbox_gateway(settle_delay_ms=0)`.

    It runs until the session ends, so call it in a fixture of session or module scope. For one test
    use `with SandboxGateway(settle_delay_ms=0) as gateway:`.
    """
    if _remote_sandbox_gateway is not None:
        yield _remote_sandbox_gateway.make
        return

    from sandbox_sim import SandboxGateway  # noqa: PLC0415 -- not before it is needed

    with ExitStack() as stack:

        def make(**settings: object) -> SandboxGateway:
            return stack.enter_context(SandboxGateway(**settings))

        yield make


@pytest.fixture(scope="session")
def _sandbox_gateway(make_sandbox_gateway: Callable[..., "SandboxGateway"]) -> "SandboxGateway":
    """One server for all tests of a session, or of one pytest-xdist worker."""
    return make_sandbox_gateway()


@pytest.fixture
def sandbox_gateway(
    request: pytest.FixtureRequest, _remote_sandbox_gateway: "RemoteGateway | None"
) -> Iterator["SandboxGateway | RemoteGateway"]:
    """A payment, airtime, bill and SMS gateway for one test, with a clock that only the test moves.

    Give your application `sandbox_gateway.url`, `.service_id` and `.auth`. Move the clock with
    `.advance(minutes=5)`, or to the next callback with `.wait_callback(transaction_id="T1")`.

    With `SANDBOX_SIM_URL` it is a service of its own at the gateway of that address, whose clock
    runs.
    """
    if _remote_sandbox_gateway is not None:
        _remote_sandbox_gateway.begin()
        request.node.stash[_OF_THE_TEST] = _remote_sandbox_gateway
        yield _remote_sandbox_gateway
        _remote_sandbox_gateway.reset()
        return
    gateway: SandboxGateway = request.getfixturevalue("_sandbox_gateway")
    gateway.renew()
    request.node.stash[_OF_THE_TEST] = gateway
    yield gateway


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `certify_case` once for each case of certify."""
    if "certify_case" in metafunc.fixturenames:
        from sandbox_sim.certify.cases import load  # noqa: PLC0415 -- not before it is needed

        metafunc.parametrize("certify_case", [case.name for case in load()])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the reports of its gateways to a failed test."""
    report = yield
    if report.failed:
        for gateway in _gateways(item):
            report.sections.append(("sandbox gateway", gateway.report()))
    return report


def _gateways(item: pytest.Item) -> Iterator["ServiceGateway"]:
    """The running gateways that a test has as fixtures or attributes of its class, each once."""
    module = sys.modules.get("sandbox_sim.testing.service_gateway")
    if module is None:
        return
    instance = getattr(item, "instance", None)
    attributes = {**vars(type(instance)), **getattr(instance, "__dict__", {})}
    values = [
        *getattr(item, "funcargs", {}).values(),
        *attributes.values(),
        item.stash.get(_OF_THE_TEST, None),
    ]
    found = dict.fromkeys(each for each in values if isinstance(each, module.ServiceGateway))
    yield from (gateway for gateway in found if gateway.is_running)
