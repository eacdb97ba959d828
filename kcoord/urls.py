"""URLs of the control plane, the dashboard and the admin. The data plane's routes are in `kcoord.asgi`."""

from django.contrib import admin
from django.urls import path

urlpatterns = [
    path("admin/", admin.site.urls),
]
