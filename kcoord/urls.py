"""URLs of the control plane, the dashboard and the admin. The data plane's routes are in `kcoord.asgi`.

Offsets come before groups, whose last path matches anything else below a group.
"""

from django.contrib import admin
from django.urls import include, path

from kcoord.control.openapi.page import OpenAPIView
from kcoord.control.rest.acls import AclsView
from kcoord.control.rest.audit import AuditView
from kcoord.control.rest.quotas import QuotasView, ThrottledPrincipalsView
from kcoord.control.rest.tokens import TokenDetailView, TokenRotationView, TokensView

admin.autodiscover()

urlpatterns = [
    path("v1/openapi.json", OpenAPIView.as_view(), name="openapi"),
    path("v1/acls", AclsView.as_view()),
    path("v1/audit", AuditView.as_view()),
    path("v1/tokens", TokensView.as_view()),
    path("v1/tokens/<anything:id>/rotate", TokenRotationView.as_view()),
    path("v1/tokens/<anything:id>", TokenDetailView.as_view()),
    path("v1/quotas", QuotasView.as_view()),
    path("v1/quotas/throttled", ThrottledPrincipalsView.as_view()),
    path("v1/", include("offsets.api.rest.urls")),
    path("v1/", include("groups.api.rest.urls")),
    path("admin/", admin.site.urls),
    path("", include("frontend.urls")),
]

handler400 = "frontend.ui.page.bad_request"
handler403 = "frontend.ui.page.not_allowed"
handler404 = "frontend.ui.page.not_found"
handler500 = "frontend.ui.outage.server_error"
