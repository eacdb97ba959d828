"""URLs of the control plane, the dashboard and the admin. The data plane's routes are in `kcoord.asgi`."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("v1/", include("groups.rest.urls")),
    path("admin/", admin.site.urls),
    path("", include("frontend.urls")),
]
