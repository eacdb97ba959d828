"""Paths of topics, groups and nodes, below /v1/. The data plane's paths below a group never get here.

`groups` itself is served by offsets, where groups are created with start offsets.
"""

from django.urls import path

from groups.api.rest import (
    configs,
    group_views,
    label_views,
    nodes,
    operator_views,
    simulation,
    topic_views,
)

urlpatterns = [
    path("assignments/simulate", simulation.SimulateView.as_view()),
    path("nodes", nodes.NodesView.as_view()),
    path("coordinator-partitions", nodes.CoordinatorPartitionsView.as_view()),
    path("topics", topic_views.TopicsView.as_view()),
    path("topics/<anything:name>/watermarks", topic_views.WatermarksView.as_view()),
    path("topics/<anything:name>", topic_views.TopicDetailView.as_view()),
    path("groups/<anything:group_id>/events", group_views.GroupEventsView.as_view()),
    path("groups/<anything:group_id>/config", configs.GroupConfigEndpoint.as_view()),
    path("groups/<anything:group_id>/labels", label_views.GroupLabelsEndpoint.as_view()),
    path("groups/<anything:group_id>/hold", operator_views.HoldView.as_view()),
    path("groups/<anything:group_id>/members/<anything:member_id>/kick", operator_views.KickView.as_view()),
    path("groups/<anything:group_id>", group_views.GroupDetailView.as_view()),
]
