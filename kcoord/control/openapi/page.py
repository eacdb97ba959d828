"""The OpenAPI document of both planes, which needs no token. `frontend.pages.docs` shows it."""

from __future__ import annotations

import json
from functools import cache

from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from rest_framework.request import Request

from kcoord.control.rest.views import ControlView


@cache
def document() -> bytes:
    """The document as JSON. It depends only on the code, so it is generated once."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return json.dumps(schema, ensure_ascii=False, indent=1).encode()


class OpenAPIView(ControlView):
    """`/v1/openapi.json`."""

    authentication_classes = ()
    permission_classes = ()
    schema = None

    def get(self, request: Request) -> HttpResponse:
        """The document."""
        self.query()
        return HttpResponse(document(), content_type="application/json", headers={"Cache-Control": "no-cache"})
