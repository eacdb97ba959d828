"""The Django admin of offsets.

A committed offset has a composite primary key, which the admin cannot list: offsets stand on the page of their group.
"""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString

from groups.admin import MOST_ROWS, GroupAdmin, table
from groups.models import Group
from kcoord.admin import utc
from offsets.models import CommittedOffset

admin.site.unregister(Group)


@admin.register(Group)
class GroupWithOffsetsAdmin(GroupAdmin):
    """Groups, with what they committed."""

    readonly_fields = (*GroupAdmin.readonly_fields, "committed_offsets")
    fieldsets = (*GroupAdmin.fieldsets, ("Offsets", {"fields": ("committed_offsets",)}))

    @admin.display(description="committed")
    def committed_offsets(self, group: Group) -> SafeString:
        """The next offsets to read."""
        committed = CommittedOffset.objects.filter(group=group).order_by("topic", "partition")
        columns = ("topic", "partition", "committed_offset", "metadata", "commit_timestamp")
        values = committed.values_list(*columns)[:MOST_ROWS]
        rows = [(*row[:4], utc(row[4])) for row in values]
        return table(("topic", "partition", "offset", "metadata", "committed at"), rows, committed.count())
