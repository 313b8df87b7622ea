"""The callbacks of payments, as OpenAPI `callbacks`."""

from sandbox_sim.domain.callbacks.signature import SIGNATURE_HEADER
from sandbox_sim.web.api.response_models import CALLBACK_MODELS
from sandbox_sim.web.openapi.json_schema import Schema, Schemas
from sandbox_sim.web.routes import JSON


def callbacks_of(schemas: Schemas) -> Schema:
    """The callback of a payment: its body depends on the setting `callback_profile` (D27)."""
    models = dict.fromkeys(CALLBACK_MODELS.values())
    body = {"anyOf": [schemas.of(model) for model in models]}
    signature = {
        "name": SIGNATURE_HEADER,
        "in": "header",
        "required": False,
        "description": "hex HMAC-SHA-256 of the body, keyed with the secret key (D29)",
        "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    }
    return {
        "outcome": {
            "{$request.body#/callback_url}": {
                "post": {
                    "operationId": "outcome",
                    "summary": "the outcome of a payment",
                    "description": "At most 3 attempts, 5 minutes apart, 30 s each (D30).",
                    "security": [],
                    "parameters": [signature],
                    "requestBody": {"required": True, "content": {JSON: {"schema": body}}},
                    "responses": {"2XX": {"description": "acknowledged"}},
                }
            }
        }
    }
