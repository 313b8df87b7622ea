"""The table of routes is complete: the router and the dispatcher have exactly its routes."""

from itertools import product

from sandbox_sim.operations import Operation
from sandbox_sim.web.app import CONTROL, DISPATCHER, ROUTES
from sandbox_sim.web.control.errors import errors_of
from sandbox_sim.web.routes import FORM, Access, Route
from tests.conftest import Sandbox, StartSandbox
from tests.web.control_api import ask, assert_error
from tests.web.hosted_page import redirect

CHARSETS = ("nonsense", "latin-1", "utf-7", "unicode_escape", "rot13", '"\\"')


def table(sandbox: Sandbox, *, of_interface: bool) -> list[Route]:
    return [
        route
        for route in sandbox.gateway.app[ROUTES]()
        if (route.access is Access.CLIENT) is of_interface
    ]


async def test_router_and_dispatcher_have_the_routes_of_the_table(
    start_sandbox: StartSandbox,
) -> None:
    """The dispatcher has the nine paths of the twelve operations."""
    sandbox = await start_sandbox(base_path="/v1")

    routed = {
        (route.method, route.resource.canonical)
        for route in sandbox.gateway.app[CONTROL]().router.routes()
        if route.resource is not None
    }
    plain = {(route.method, route.path) for route in table(sandbox, of_interface=False)}
    assert routed == plain | {(method, f"/v1{path}") for method, path in plain}
    assert len(plain) > 50

    routes = table(sandbox, of_interface=True)
    paths = {route.path for route in routes}
    dispatched = set(sandbox.gateway.app[DISPATCHER]().paths)
    assert dispatched == paths | {f"/v1{path}" for path in paths}
    assert {route.method for route in routes} == {"POST"}
    assert len(routes) == 9
    operations = [operation for route in routes for operation in route.operations]
    assert sorted(operations) == sorted(Operation)
    for route in sandbox.gateway.app[ROUTES]():
        assert route.query is None or route.body is None, route
        assert route.summary, route
        assert not route.summary.endswith("."), route
        assert route.answers, route


async def test_each_route_has_its_own_errors_and_the_common_ones(sandbox: Sandbox) -> None:
    routes = {
        (route.method, route.path): {error.code for error in errors_of(route)}
        for route in table(sandbox, of_interface=False)
    }

    assert routes["GET", "/_sandbox/livez"] == {"internal_error", "store_unavailable"}
    assert routes["POST", "/_sandbox/snapshots/{name}/restore"] == {
        *("bad_request", "unauthorized", "host_not_allowed", "origin_not_allowed", "not_found"),
        *("request_entity_too_large", "encoded_body", "internal_error", "store_unavailable"),
    }


async def test_a_too_large_body_gets_one_code_on_every_python(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(max_body_bytes=1000)

    answer = await ask(sandbox, "POST", "/_sandbox/reset", b" " * 1001)

    assert_error(answer, 413, "max_body_bytes allows: 1000 bytes")
    assert answer.body["error"]["code"] == "request_entity_too_large"


async def test_an_action_is_not_read_as_the_id_of_a_record(sandbox: Sandbox) -> None:
    """`Allow` names the methods that the action takes."""
    for plural, action, method in product(
        ("requests", "callbacks", "sms"), ("find", "count", "wait"), ("GET", "PUT", "OPTIONS")
    ):
        answer = await ask(sandbox, method, f"/_sandbox/{plural}/{action}")

        assert_error(answer, 405, method)
        assert answer.headers["Allow"] == "POST"


async def test_a_malformed_form_gets_400(start_sandbox: StartSandbox) -> None:
    rows = [
        ("multipart/form-data", b"choice=pay"),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\npay\r\n--x--\r\n"),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Length: -5\r\n\r\npay\r\n--x--\r\n"),
        (FORM, b"choice=\xff"),
        (FORM, b"choice=%ff"),
        (FORM, b"choice=%ed%a0%80"),
        (FORM, b"choice=pay&" * 101),
        *((f"{FORM}; charset={charset}", b"choice=pay") for charset in CHARSETS),
        ("application/json", b"{}"),
    ]
    sandbox = await start_sandbox(control_token="s3cret")
    for content_type, body in rows:
        headers = {"Content-Type": content_type}
        async with sandbox.session.post(
            f"{sandbox.url}/_sandbox/pay/1", data=body, headers=headers
        ) as answer:
            assert answer.status == 400
            assert "Choose Pay, Let it fail or Cancel" in await answer.text()
        assert_error(await ask(sandbox, "POST", "/_sandbox/login", body, **headers), 400, "form")


async def test_json_and_forms_are_read_as_utf_8(sandbox: Sandbox) -> None:
    """JSON is UTF-8 with any charset in its Content-Type."""
    for charset in CHARSETS:
        headers = {"Content-Type": f"application/json; charset={charset}"}

        added = await ask(sandbox, "POST", "/_sandbox/reset", b'{"service_id": 55}', **headers)
        paid = await sandbox.post("/make_payment", sandbox.payment(), **headers)

        assert (added.status, paid.code) == (200, "202")
        assert (await ask(sandbox, "POST", "/_sandbox/inbox/a", b"\xff", **headers)).status == 200

    page = await redirect(sandbox)
    for charset in ("utf-8", "UTF-8", '"utf-8"'):
        headers = {"Content-Type": f"{FORM}; charset={charset}"}
        async with sandbox.session.post(page, data=b"choice=fail", headers=headers) as answer:
            assert answer.status == 200
