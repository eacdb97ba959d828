"""Access: API tokens and the rules they carry.

The secret of a token is never stored, only its SHA-256 (the secret has 256 random bits, so a slow hash adds nothing).
Source: http-api.md 7.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from kcoord.database.fields import MillisField


class ApiToken(models.Model):
    """A bearer token of a member, script or operator."""

    name = models.CharField(max_length=200, unique=True, help_text="Who or what uses it.")
    digest = models.CharField(max_length=64, unique=True, editable=False, help_text="SHA-256 of the secret, in hex.")
    prefix = models.CharField(max_length=16, editable=False, help_text="First characters of the secret, to tell it.")
    created_at = MillisField(editable=False)
    expires_at = MillisField(null=True, blank=True, help_text="Milliseconds since the epoch; empty: never.")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE)
    last_used_at = MillisField(null=True, editable=False, help_text="Rounded down to a minute or so.")
    previous_digest = models.CharField(max_length=64, unique=True, null=True, editable=False)
    previous_until = MillisField(null=True, editable=False, help_text="Until then the secret before works, too.")

    class Meta:
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class AccessRule(models.Model):
    """What a token, an account or a group of people may do, or may not: an operation on resources by name or prefix.

    Rules of an account and of the groups it is in apply together; one that denies wins (`kcoord.access.rights`).
    """

    class Effect(models.TextChoices):
        ALLOW = "allow"
        DENY = "deny"

    class Operation(models.TextChoices):
        READ = "read"
        DESCRIBE = "describe"
        ALTER_OFFSETS = "alter-offsets"
        DELETE = "delete"
        KICK = "kick"
        ADMIN = "admin"

    class Resource(models.TextChoices):
        GROUP = "group"
        TOPIC = "topic"
        TRANSACTIONAL_ID = "transactional-id"
        CLUSTER = "cluster"

    class Pattern(models.TextChoices):
        LITERAL = "literal"
        PREFIX = "prefix"

    token = models.ForeignKey(ApiToken, null=True, blank=True, on_delete=models.CASCADE, related_name="rules")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="access_rules"
    )
    group = models.ForeignKey(
        "auth.Group", null=True, blank=True, on_delete=models.CASCADE, related_name="access_rules"
    )
    effect = models.CharField(max_length=8, choices=Effect.choices, default=Effect.ALLOW, db_default="allow")
    operation = models.CharField(max_length=16, choices=Operation.choices)
    resource = models.CharField(max_length=16, choices=Resource.choices)
    pattern = models.CharField(max_length=8, choices=Pattern.choices, default=Pattern.LITERAL)
    name = models.CharField(max_length=255, blank=True, help_text="Name or prefix; the empty prefix matches all.")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(token__isnull=False, user__isnull=True, group__isnull=True)
                | models.Q(token__isnull=True, user__isnull=False, group__isnull=True)
                | models.Q(token__isnull=True, user__isnull=True, group__isnull=False),
                name="kcoord_accessrule_one_holder",
            ),
            *(
                models.UniqueConstraint(
                    fields=[holder, "effect", "operation", "resource", "pattern", "name"],
                    name=f"kcoord_accessrule_{holder}_once",
                )
                for holder in ("token", "user", "group")
            ),
        ]

    def __str__(self) -> str:
        star = "*" if self.pattern == self.Pattern.PREFIX else ""
        deny = "deny " if self.effect == self.Effect.DENY else ""
        return f"{deny}{self.operation} {self.resource}:{self.name}{star}"


class Quota(models.Model):
    """How much of one budget a principal may use at each node (`kcoord.access.quotas`)."""

    class Kind(models.TextChoices):
        TOKEN = "token"  # noqa: S105 - no secret
        USER = "user"
        GROUP = "group"
        DEFAULT = "default"

    class Budget(models.TextChoices):
        HEARTBEATS = "heartbeats", "heartbeats (per second)"
        COMMITS = "commits", "commits and fetches (per second)"
        READS = "reads", "reads (per second)"
        WRITES = "writes", "writes (per second)"
        BYTES = "bytes", "bytes (per second)"
        CPU = "cpu", "CPU time (ms per second)"
        MEMBERS = "members", "new members (per minute)"
        GROUPS = "groups", "new groups (per minute)"
        PARTITIONS = "partitions", "partitions (per minute)"
        CONNECTIONS = "connections", "connections (open at once)"

    kind = models.CharField(max_length=8, choices=Kind.choices, help_text="A token comes before a user, a group last.")
    name = models.CharField(
        max_length=200, blank=True, help_text="Of the token, the user or the group of people; empty for the default."
    )
    budget = models.CharField(max_length=16, choices=Budget.choices)
    limit = models.FloatField(null=True, blank=True, help_text="In the unit of the budget; empty: no limit.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "name", "budget"], name="kcoord_quota_once"),
            models.CheckConstraint(
                condition=models.Q(limit__isnull=True) | models.Q(limit__gt=0), name="kcoord_quota_limit"
            ),
            models.CheckConstraint(
                condition=models.Q(kind="default", name="") | (~models.Q(kind="default") & ~models.Q(name="")),
                name="kcoord_quota_name",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.budget} of {self.kind} {self.name}".rstrip()


class Throttled(models.Model):
    """A principal that quotas have throttled lately, at any node. Written by the service."""

    kind = models.CharField(max_length=8)
    name = models.CharField(max_length=200, blank=True)
    budget = models.CharField(max_length=16)
    limit = models.FloatField()
    used = models.FloatField(help_text="In the unit of the limit, when it was throttled last.")
    times = models.BigIntegerField(help_text="Requests, as far as they are noted: about once a minute.")
    since = MillisField()
    throttled_at = MillisField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "name", "budget"], name="kcoord_throttled_once")]

    def __str__(self) -> str:
        return f"{self.budget} of {self.kind} {self.name}"


class TimerHeartbeat(models.Model):
    """When the timers last ran: one row, written by each tick, read by /readyz."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    ticked_at = MillisField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="kcoord_timerheartbeat_one_row")]

    def __str__(self) -> str:
        return f"last tick at {self.ticked_at}"


class Counter(models.Model):
    """How often something happened, in any process: see `kcoord.database.counters`, `offsets.commits.acknowledged`."""

    name = models.CharField(max_length=64, primary_key=True)
    value = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.name}: {self.value}"


class AuditRecord(models.Model):
    """What somebody did or was refused, sealed in a hash chain: see `kcoord.access.audit`. Rows are never changed."""

    seq = models.BigIntegerField(primary_key=True)
    prev = models.BinaryField()
    hash = models.BinaryField()
    at = MillisField()
    kind = models.TextField()
    principal = models.TextField()
    principal_id = models.TextField()
    address = models.TextField()
    request_id = models.TextField()
    door = models.TextField()
    act = models.TextField()
    resource = models.TextField()
    name = models.TextField()
    before = models.TextField(null=True)
    after = models.TextField(null=True)
    reason = models.TextField()
    result = models.TextField()
    error = models.TextField()
    count = models.IntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["at"], name="kcoord_audit_by_time"),
            models.Index(fields=["resource", "name", "seq"], name="kcoord_audit_by_name"),
        ]

    def __str__(self) -> str:
        return f"{self.seq}: {self.act} by {self.principal}"


class AuditChain(models.Model):
    """Where the audit's chain ends and, once records are removed for their age, where it begins: one row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    seq = models.BigIntegerField()
    hash = models.BinaryField()
    removed_through = models.BigIntegerField()
    removed_hash = models.BinaryField()
    removed = models.BigIntegerField()
    removed_at = MillisField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="kcoord_auditchain_one_row")]

    def __str__(self) -> str:
        return f"{self.seq} records"
