"""Paths of topics and groups, below /v1/."""

from django.urls import path, register_converter

from groups.rest import topic_views
from kcoord.converters import Anything

register_converter(Anything, "anything")

urlpatterns = [
    path("topics", topic_views.TopicsView.as_view()),
    path("topics/<anything:name>/watermarks", topic_views.WatermarksView.as_view()),
    path("topics/<anything:name>", topic_views.TopicDetailView.as_view()),
]
