"""Paths of committed offsets, below /v1/."""

from django.urls import path

from kcoord import converters  # noqa: F401 - registers `anything`
from offsets.rest import views

urlpatterns = [
    path("groups/<anything:group_id>/offsets", views.GroupOffsetsView.as_view()),
]
