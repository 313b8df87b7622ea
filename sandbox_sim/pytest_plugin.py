"""The pytest plugin: `sandbox_gateway`, `make_sandbox_gateway`, and the report of a failed test.

pytest loads this module in every test run if the package is installed, so the rest of the package
is imported only when a fixture is used.
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

# The gateway of a test, stored here because `getfixturevalue` does not add it to `funcargs`.
_GATEWAY_KEY = pytest.StashKey["ServiceGateway"]()


@pytest.fixture(scope="session")
def _remote_sandbox_gateway() -> "RemoteGateway | None":
    """The gateway at `SANDBOX_SIM_URL`; None if the variable is not set."""
    from sandbox_sim.testing.remote import RemoteGateway  # noqa: PLC0415 -- not before it is needed

    return RemoteGateway.of_environment()


@pytest.fixture(scope="session")
def make_sandbox_gateway(
    _remote_sandbox_gateway: "RemoteGateway | None",
) -> Iterator[Callable[..., "SandboxGateway"]]:
    """Start a gateway with settings, such as `make_sandbox_gateway(settle_delay_ms=0)`.

    It runs until the session ends, so call it in a fixture with session or module scope. For a
    single test use `with SandboxGateway(settle_delay_ms=0) as gateway:`.
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
    """The server for all tests of a session, or of a pytest-xdist worker."""
    return make_sandbox_gateway()


@pytest.fixture
def sandbox_gateway(
    request: pytest.FixtureRequest, _remote_sandbox_gateway: "RemoteGateway | None"
) -> Iterator["SandboxGateway | RemoteGateway"]:
    """A payment, airtime, bill and SMS gateway for one test, with a clock that only the test moves.

    Configure your application with `sandbox_gateway.url`, `.service_id` and `.auth`. Move the clock
    with `.advance(minutes=5)`, or to the next callback with `.wait_callback(transaction_id="T1")`.

    If `SANDBOX_SIM_URL` is set, each test gets its own service in the gateway at that address,
    whose clock runs.
    """
    if _remote_sandbox_gateway is not None:
        _remote_sandbox_gateway.begin()
        request.node.stash[_GATEWAY_KEY] = _remote_sandbox_gateway
        yield _remote_sandbox_gateway
        _remote_sandbox_gateway.reset()
        return
    gateway: SandboxGateway = request.getfixturevalue("_sandbox_gateway")
    gateway.renew()
    request.node.stash[_GATEWAY_KEY] = gateway
    yield gateway


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the argument `certify_case` once for each certification case."""
    if "certify_case" in metafunc.fixturenames:
        from sandbox_sim.certify.cases import load  # noqa: PLC0415 -- not before it is needed

        metafunc.parametrize("certify_case", [case.name for case in load()])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the reports of the gateways of a failed test."""
    report = yield
    if report.failed:
        for gateway in _running_gateways(item):
            report.sections.append(("sandbox gateway", _report_of(gateway)))
    return report


def _report_of(gateway: "ServiceGateway") -> str:
    """The report, or why there is none: an exception here would end the whole run of pytest."""
    try:
        return gateway.report()
    except Exception as error:
        return f"the gateway gives no report: {error!r}"


def _running_gateways(item: pytest.Item) -> Iterator["ServiceGateway"]:
    """The running gateways among the fixtures of a test and the attributes of its class."""
    module = sys.modules.get("sandbox_sim.testing.service_gateway")
    if module is None:
        return
    instance = getattr(item, "instance", None)
    attributes = {**vars(type(instance)), **getattr(instance, "__dict__", {})}
    values = [
        *getattr(item, "funcargs", {}).values(),
        *attributes.values(),
        item.stash.get(_GATEWAY_KEY, None),
    ]
    found = dict.fromkeys(each for each in values if isinstance(each, module.ServiceGateway))
    yield from (gateway for gateway in found if gateway.is_running)
