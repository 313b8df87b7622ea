"""The OpenAPI document and its page, made from the table of routes at the first request."""
