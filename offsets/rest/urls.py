"""Paths of committed offsets, below /v1/."""

from django.urls import path

from kcoord import converters  # noqa: F401 - registers `anything`
from offsets.rest import deletion_views, pin_views, views

urlpatterns = [
    path("groups/<anything:group_id>/pins", pin_views.GroupPinsView.as_view()),
    path("groups/<anything:group_id>/offsets/delete", deletion_views.DeleteOffsetsView.as_view()),
    path("groups/<anything:group_id>/offsets", views.GroupOffsetsView.as_view()),
]
