"""The pytest plugin, in separate test runs."""

import pytest

import sandbox_sim.testing

PAY = """
import json, urllib.request

def pay(gateway, **fields):
    body = {
        "service_id": gateway.service_id, "reference": "Order 1", "transaction_id": "T1",
        "trans_type": "CTM", "amount": 10.5, "nw": "MTN", "payment_option": "MOM",
        "customer_number": "0244000001", "nickname": "Ama",
        "callback_url": gateway.inbox_url(), "request_time": "2026-01-01 09:00", **fields,
    }
    sent = json.dumps(body).encode()
    request = urllib.request.Request(gateway.url + "/make_payment", sent, gateway.headers)
    urllib.request.urlopen(request).close()
"""


@pytest.fixture(autouse=True)
def _project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A separate project with our plugin, whose tests import `pay` from its module `payments`.

    pytest looks for no other plugins, because that takes half of the time of such a run.
    tests/test_wheel.py shows that pytest finds ours where it is installed.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(payments=PAY)
    pytester.makeini("[pytest]\naddopts = -p sandbox_sim.pytest_plugin")


def test_each_test_has_its_own_service_and_clock_on_one_server(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from payments import pay

        seen = {"service_id": set(), "url": set(), "now": set()}

        @pytest.mark.parametrize("n", range(5))
        def test_payment(sandbox_gateway, n):
            sandbox_gateway.requests.expect_none()
            for name, values in seen.items():
                values.add(getattr(sandbox_gateway, name))
            pay(sandbox_gateway)
            sandbox_gateway.wait_callback(transaction_id="T1")

        def test_seen():
            assert [len(values) for values in seen.values()] == [5, 1, 1]
        """
    )

    pytester.runpytest_inprocess().assert_outcomes(passed=6)


def test_a_failed_test_shows_the_records_of_the_gateway(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from payments import pay

        def test_before(sandbox_gateway):
            pay(sandbox_gateway, transaction_id="of another test")

        def test_payment(sandbox_gateway):
            pay(sandbox_gateway, callback_url="http://127.0.0.1:9/callbacks")
            pay(sandbox_gateway, transaction_id="T2", customer_number="0244000009")
            sandbox_gateway.wait_callback(transaction_id="T1")
            sandbox_gateway.callbacks.expect_one(transaction_id="T1", state="delivered")
        """
    )

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            ">*sandbox_gateway.callbacks.expect_one(transaction_id=*",
            "E*AssertionError: expected one callback with transaction_id='T1', state='delivered'*",
            "*- sandbox gateway -*",
            "http://127.0.0.1:*, service *, gateway time 2026-01-01T09:00:01.000Z",
            "requests:",
            "*collect T1: 202, *",
            "*collect T2: 015, last digit 9 is a simulated decline *",
            "callbacks:",
            "*T1 status 000 to http://127.0.0.1:9/callbacks: retrying",
            "*attempt 1: not acknowledged: no connection to *; next attempt at 09:05:*",
        ]
    )
    result.stdout.no_fnmatch_line("*of another test*")
    result.stdout.no_fnmatch_line("*def expect_one*")


def test_the_report_of_a_failed_test_shows_its_gateway_in_every_kind_of_test(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import unittest
        import pytest
        from payments import pay
        from sandbox_sim import SandboxGateway

        def test_by_with():
            with SandboxGateway() as gateway:
                pay(gateway, transaction_id="by with")
                gateway.callbacks.expect_one()

        @pytest.fixture
        def paid(sandbox_gateway):
            pay(sandbox_gateway, transaction_id="by a fixture")
            raise RuntimeError("the shop is shut")

        def test_by_a_fixture(paid):
            pass

        def test_as_it_runs(request):
            gateway = request.getfixturevalue("sandbox_gateway")
            pay(gateway, transaction_id="as it runs")
            gateway.callbacks.expect_one()

        def test_passes(sandbox_gateway):
            pay(sandbox_gateway, transaction_id="of a test that passes")

        def test_without_a_gateway():
            assert not "shown"

        def test_when_it_has_stopped(request):
            with SandboxGateway() as gateway:
                request.node.funcargs["gateway"] = gateway
            assert not "shown"

        class PaymentTest(unittest.TestCase):
            @classmethod
            def setUpClass(cls):
                cls.gateway = cls.enterClassContext(SandboxGateway())

            def test_by_unittest(self):
                pay(self.gateway, transaction_id="by unittest")
                self.gateway.callbacks.expect_one()
        """
    )

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(passed=1, failed=5, errors=1)
    for way in ("by with", "by a fixture", "as it runs", "by unittest"):
        result.stdout.fnmatch_lines(["*sandbox gateway*", f"*collect {way}: 202, *"])
    sections = result.stdout.str().count("- sandbox gateway -")
    assert sections == 3, "test_by_with has a note of the error instead"


def test_a_test_whose_gateway_has_ended_is_reported_and_the_next_ones_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDBOX_SIM_URL", "")
    pytester.makepyfile(
        """
        import os
        from sandbox_sim import SandboxGateway

        server = SandboxGateway().__enter__()
        os.environ["SANDBOX_SIM_URL"] = server.url

        def test_ends_the_gateway(sandbox_gateway):
            server.__exit__(None, None, None)
            assert not "shown"

        def test_next():
            pass
        """
    )

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["E*assert not 'shown'", "the gateway gives no report: *refused*"])


def test_gateways_with_settings_last_for_the_session(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from payments import pay

        @pytest.fixture(scope="module")
        def flat(make_sandbox_gateway):
            return make_sandbox_gateway(callback_profile="flat", settle_delay_ms=0)

        def test_settings(flat, sandbox_gateway):
            assert flat.url != sandbox_gateway.url
            pay(flat)
            assert flat.wait_callback().body["status"] == "000"

        def test_session(flat):
            assert flat.requests.expect_one()

        def test_failure(flat):
            flat.reset()
            pay(flat, transaction_id="of flat")
            flat.requests.expect_none()

        def test_bad_setting(make_sandbox_gateway):
            make_sandbox_gateway(settle_delay_ms=-1)
        """
    )

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        ["*collect of flat: 202, *", "E*ConfigError: settle_delay_ms (from a keyword): must be*"]
    )


# Each of two workers runs every test.
IN_TWO_WORKERS = ("-p", "xdist", "--tx", "2*popen", "--dist", "each")


def lines_seen(pytester: pytest.Pytester) -> list[list[str]]:
    """The words of each line that the tests of a run have added to the file `seen`."""
    return [line.split() for line in (pytester.path / "seen").read_text("utf-8").splitlines()]


def test_xdist_workers_import_nothing_before_a_fixture_and_have_a_server_each(
    pytester: pytest.Pytester,
) -> None:
    """One run shows both, because two processes that import the package take most of the time."""
    pytester.makepyfile(
        """
        import os
        import sys
        from pathlib import Path
        import pytest
        from payments import pay

        HEAVY = {"aiohttp", "pydantic", "click", "cachetools", "yarl"}

        def ours():
            return {name for name in sys.modules if name.startswith("sandbox_sim")}

        def test_before():
            assert ours() == {"sandbox_sim", "sandbox_sim.pytest_plugin"}
            assert HEAVY.isdisjoint(sys.modules)

        @pytest.mark.parametrize("n", range(5))
        def test_payment(sandbox_gateway, n):
            assert "sandbox_sim.testing" in ours()
            pay(sandbox_gateway)
            sandbox_gateway.wait_callback(transaction_id="T1")
            line = f"{os.environ['PYTEST_XDIST_WORKER']} {sandbox_gateway.service_id} "
            with Path("seen").open("a") as seen:
                seen.write(line + sandbox_gateway.url + "\\n")
        """
    )

    pytester.runpytest_inprocess(*IN_TWO_WORKERS).assert_outcomes(passed=12)

    seen = lines_seen(pytester)
    assert len({service_id for _, service_id, _ in seen}) == 10
    assert len({url for _, _, url in seen}) == len({worker for worker, _, _ in seen}) == 2


ASYNCIO = ("-o", "asyncio_mode=strict", "-o", "asyncio_default_fixture_loop_scope=function")


@pytest.mark.parametrize(
    ("mark", "options"),
    [
        ("asyncio", ["-p", "pytest_asyncio.plugin", *ASYNCIO]),
        ("anyio", ["-p", "anyio.pytest_plugin"]),
    ],
)
def test_coroutine_tests_run_under_pytest_asyncio_and_anyio(
    pytester: pytest.Pytester, mark: str, options: list[str]
) -> None:
    pytester.makepyfile(
        f"""
        import asyncio
        import pytest
        from payments import pay

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @pytest.mark.{mark}
        async def test_payment(sandbox_gateway):
            async def shop(reader, writer):
                head = await reader.readuntil(b"\\r\\n\\r\\n")
                writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
                await writer.drain()
                writer.close()

            async with await asyncio.start_server(shop, "127.0.0.1", 0) as server:
                port = server.sockets[0].getsockname()[1]
                pay(sandbox_gateway, callback_url=f"http://127.0.0.1:{{port}}/callbacks")

                callback = await sandbox_gateway.aio.wait_callback(transaction_id="T1")

            assert callback.state == "delivered"
        """
    )

    pytester.runpytest_inprocess(*options).assert_outcomes(passed=1)


WRONG_ARGUMENTS = {
    "callbacks.expect_one(transactionid='T1')": "TypeError: a callback has no field",
    "wait_callback(transactionid='T1')": "TypeError: a callback has no field",
    "callbacks.expect(state='Failed')": "ValueError: state 'Failed' is not one of pending,",
    "transactions.where(status='paid')": "ValueError: status 'paid' is not one of 000 (",
    "wait_callback(state='Failed')": "ValueError: state 'Failed' is not one of pending,",
    "override(status='009')": "ValueError: ",
    "fault(status=418)": "ValueError: ",
    "advance(minutes=-1)": "ValueError: the clock can move by",
}


def test_a_wrong_argument_shows_the_line_of_the_test_only(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "\n".join(
            f"def test_{number}(sandbox_gateway):\n    sandbox_gateway.{call}\n"
            for number, call in enumerate(WRONG_ARGUMENTS)
        )
    )

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(failed=len(WRONG_ARGUMENTS))
    for call, error in WRONG_ARGUMENTS.items():
        result.stdout.fnmatch_lines([f">*sandbox_gateway.{call}", f"E *{error}*"], consecutive=True)
    result.stdout.no_fnmatch_line("*sandbox_sim/testing/*")


def test_parallel_tests_share_the_gateway_that_the_environment_names(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests do not import the packages of the server, so these need not be installed."""
    pytester.makepyfile(
        """
        import sys
        from pathlib import Path
        from payments import pay

        HEAVY = {"aiohttp", "pydantic", "click", "cachetools", "yarl"}

        def test_payment(sandbox_gateway):
            pay(sandbox_gateway)
            sandbox_gateway.wait_callback(transaction_id="T1")
            sandbox_gateway.transactions.expect_one()
            assert HEAVY.isdisjoint(sys.modules)
            with Path("seen").open("a") as seen:
                seen.write(f"{sandbox_gateway.service_id} {sandbox_gateway.url}\\n")

        def test_settings(make_sandbox_gateway):
            make_sandbox_gateway(settle_delay_ms=0)
        """
    )
    with sandbox_sim.SandboxGateway(settle_delay_ms=0) as server:
        server.reset_clock()
        monkeypatch.setenv("SANDBOX_SIM_URL", server.url)
        result = pytester.runpytest_inprocess(*IN_TWO_WORKERS)
        url = server.url

    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["E*its settings apply to all its users*"])
    seen = lines_seen(pytester)
    assert len({service_id for service_id, _ in seen}) == 2
    assert {url for _, url in seen} == {url}
