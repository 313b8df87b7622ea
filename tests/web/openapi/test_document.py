"""The OpenAPI document: valid, complete, the same from server and command, checked by tests."""

import json
from collections.abc import Iterator
from typing import Any, TypedDict

import jsonschema_rs
import pytest
from click.testing import CliRunner
from openapi_spec_validator import validate

from sandbox_sim.bootstrap import build
from sandbox_sim.callbacks.bodies import BODIES
from sandbox_sim.cli import main
from sandbox_sim.explanations import field_meanings
from sandbox_sim.records.callbacks import Profile
from sandbox_sim.records.transactions import Status
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.json_text import compact
from sandbox_sim.values.response_codes import CATALOGUE
from sandbox_sim.web.api.responses import CALLBACK_MODELS
from sandbox_sim.web.app import ROUTES
from sandbox_sim.web.openapi.document import Schemas, openapi_document
from sandbox_sim.web.openapi.routes import ServerFacts
from sandbox_sim.web.routes import ANY_METHOD
from tests.conftest import Sandbox, StartSandbox
from tests.kit.requests import OPERATIONS
from tests.openapi_contract import Contract
from tests.records.samples import NOON, transaction
from tests.web.control_api import ask

Schema = dict[str, Any]


@pytest.fixture(scope="module")
def document() -> Schema:
    routes = build(Settings(store="memory:")).app[ROUTES]()
    return openapi_document(routes, ServerFacts())


def schema_of(document: Schema, schema: Schema) -> Any:
    whole = {"allOf": [schema], "components": document["components"]}
    return jsonschema_rs.Draft202012Validator(whole)


def fields_in(node: object, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Each field with its path; what `allOf` narrows is a field of the schema beside it."""
    if isinstance(node, dict):
        for name, field in node.get("properties", {}).items():
            yield f"{path}/{name}", field
        for name, inner in node.items():
            if name != "allOf":
                yield from fields_in(inner, f"{path}/{name}")


def test_the_document_is_valid_and_its_operations_have_unique_ids(document: Schema) -> None:
    assert document["openapi"] == "3.1.0"
    validate(document)
    for route in build(Settings(store="memory:")).app[ROUTES]():
        methods = set(document["paths"][route.path])
        assert route.method == ANY_METHOD or route.method.lower() in methods, route
    inbox = document["paths"]["/_sandbox/inbox/{name}"]
    assert set(inbox) == {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
    ids = [each["operationId"] for item in document["paths"].values() for each in item.values()]
    assert len(ids) == len(set(ids)) > 60


def test_every_field_has_a_description(document: Schema) -> None:
    fields = [*fields_in(document)]

    assert len(fields) > 900
    assert not [path for path, each in fields if not each.keys() & {"description", "$ref"}]
    words = {each.get("description") for _, each in fields}
    assert set(field_meanings().values()) <= words


def test_a_docstring_describes_the_fields_of_an_input(document: Schema) -> None:
    schemas = document["components"]["schemas"]

    assert schemas["SmsHistory"]["description"] == "SMS history (endpoint.11)."
    assert (
        schemas["SmsHistory"]["properties"]["page"]["description"] == "from 1, which is the default"
    )
    number = schemas["SeedBody"]["properties"]["service_id"]["description"]
    assert number == "the service; an integer from 1 to 9223372036854775807", "of the base class"


async def test_the_command_prints_the_document_that_the_server_serves(sandbox: Sandbox) -> None:
    printed = CliRunner().invoke(main, ["openapi"])

    served = await ask(sandbox, "GET", "/_sandbox/openapi.json")

    assert printed.exit_code == 0
    assert json.loads(printed.stdout) == served.body


async def test_the_document_follows_the_settings_of_the_server(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(
        base_path="/v1", sandbox_reject_status=422, control_token="s3cret"
    )

    path = "/v1/_sandbox/openapi.json"
    document = (await ask(sandbox, "GET", path, Authorization="Bearer s3cret")).body

    assert document["servers"] == [{"url": "/v1"}]
    assert document["paths"]["/_sandbox/clock"]["get"]["security"] == [{"control": []}]
    assert "422" in document["paths"]["/send_airtime"]["post"]["responses"]


def test_valid_bodies_fit_the_schema_and_make_payment_is_a_tagged_union(document: Schema) -> None:
    def schema_of_body(path: str) -> Schema:
        content = document["paths"][path]["post"]["requestBody"]["content"]
        schema: Schema = content["application/json"]["schema"]
        return schema

    for operation in OPERATIONS.values():
        validator = schema_of(document, schema_of_body(operation.path))
        assert validator.is_valid(operation.body)
        assert not validator.is_valid({**operation.body, "service_id": "55"})

    payment = schema_of_body("/make_payment")
    assert payment["discriminator"]["propertyName"] == "trans_type"
    assert set(payment["discriminator"]["mapping"]) == {"CTM", "DTTW", "MTC"}
    ctm = document["components"]["schemas"]["MakePaymentCtm"]
    assert ctm["discriminator"]["propertyName"] == "payment_option"
    assert set(ctm["discriminator"]["mapping"]) == {"MOM", "CRD", "CRM"}


def test_an_operation_lists_every_rejection(document: Schema) -> None:
    """An override can give any of them."""
    components = document["components"]
    for path in {operation.path for operation in OPERATIONS.values()}:
        listed: set[str] = set()
        for given in document["paths"][path]["post"]["responses"].values():
            name = given.get("$ref", "").rpartition("/")[2]
            response = components["responses"][name] if name else given
            text = json.dumps(response["content"]["application/json"]["schema"])
            for model, schema in components["schemas"].items():
                if f'/{model}"' in text and model.startswith("Rejection"):
                    listed |= set(schema["properties"]["response_code"]["enum"])

        assert listed == set(CATALOGUE) - {"000", "202", "370", "388", "393"}


def test_a_search_names_the_values_of_a_field(document: Schema) -> None:
    operation = document["paths"]["/_sandbox/requests/find"]["post"]
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    match = body["allOf"][1]["properties"]["match"]

    assert match["properties"]["mode"] == {"enum": ["S", "P", None]}
    assert match["properties"]["id"] == {"type": ["null", "string"]}
    assert match["properties"]["service_id"] == {"type": ["null", "integer"]}


def test_the_callback_of_each_profile_is_described(document: Schema) -> None:
    callback = document["paths"]["/make_payment"]["post"]["callbacks"]["outcome"]
    body = callback["{$request.body#/callback_url}"]["post"]["requestBody"]
    for profile in Profile:
        own = {"$ref": f"#/components/schemas/{CALLBACK_MODELS[profile].__name__}"}
        validator = schema_of(document, own)

        for status in Status:
            sent = json.loads(compact(BODIES[profile](transaction(status=status), NOON)))
            assert validator.is_valid(sent), (profile, status)
            assert set(sent) == set(CALLBACK_MODELS[profile].__annotations__)
        assert own in body["content"]["application/json"]["schema"]["anyOf"]


HEADERS = {
    "content-type": "application/json", "x-sandbox-rule": "D3", "x-sandbox-request-id": "1"
}  # fmt: skip
REJECTION = b'{"response_message": "No", "response_code": "100"}'
CLOCK = b'{"now": "2026-01-01T00:00:00.000Z", "frozen": true, "shift_s": 0}'


def test_the_contract_that_checks_all_answers_refuses_those_outside_the_document() -> None:
    contract = Contract(build(Settings(store="memory:")).app[ROUTES](), ServerFacts())
    contract.check("POST", "/pay_bill", 401, HEADERS, REJECTION)
    contract.check("GET", "/_sandbox/clock", 200, HEADERS, CLOCK)

    for method, path, status, body in (
        ("POST", "/pay_bill", 401, b'{"response_message": "No"}'),
        ("POST", "/pay_bill", 401, REJECTION.replace(b"100", b"015")),
        ("POST", "/pay_bill", 418, REJECTION),
        ("POST", "/unknown", 200, b"{}"),
        ("GET", "/_sandbox/clock", 200, CLOCK.replace(b', "shift_s": 0', b"")),
        ("GET", "/_sandbox/clock", 200, CLOCK.replace(b"true", b"1")),
        ("GET", "/_sandbox/clock", 200, CLOCK.replace(b"}", b', "x": 1}')),
        ("GET", "/_sandbox/clock", 404, b'{"error": {"code": "not_found", "message": "x"}}'),
    ):
        with pytest.raises(AssertionError):
            contract.check(method, path, status, HEADERS, body)
    without = {"content-type": "application/json"}
    with pytest.raises(AssertionError, match="X-Sandbox-Rule"):
        contract.check("POST", "/pay_bill", 401, without, REJECTION)


def model(name: str, **fields: Any) -> Any:
    return TypedDict(name, fields)  # type: ignore[operator]


def test_a_model_is_one_component_and_two_models_with_the_same_name_are_refused() -> None:
    view = model("View", id=str)
    schemas = Schemas()

    assert (
        schemas.schema_of(view) == schemas.schema_of(view) == {"$ref": "#/components/schemas/View"}
    )
    assert list(schemas.components) == ["View"]
    with pytest.raises(ValueError, match="two models have the name View"):
        schemas.schema_of(model("View", at=str))
