"""The OpenAPI document of both planes."""
