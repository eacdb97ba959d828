"""The OpenAPI document of both planes, and the page that shows it."""
