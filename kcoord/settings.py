"""Django's settings, built from the one table of settings (`kcoord.config`)."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from kcoord.config import Config
from kcoord.control import admin_theme
from kcoord.database.address import django_database, libpq_conninfo

KCOORD = Config.from_env(os.environ)
DATA_DIR = KCOORD.data_dir


def _secret_key() -> str:
    """The configured key, else the generated one, else a key that is lost when this process ends."""
    path = DATA_DIR / "secret_key"
    if KCOORD.str("secret.key"):
        return KCOORD.str("secret.key")
    return path.read_text().strip() if path.is_file() else secrets.token_urlsafe(48)


SECRET_KEY = _secret_key()
DEBUG = False
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "testserver", *filter(None, KCOORD.str("allowed.hosts").split(","))]

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin.apps.SimpleAdminConfig",  # kcoord.urls discovers the admin: only pages need it
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_celery_beat",
    "rest_framework",
    "drf_spectacular",
    "kcoord.apps.KcoordConfig",
    "groups.apps.GroupsConfig",
    "offsets.apps.OffsetsConfig",
    "frontend.apps.FrontendConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "frontend.middleware.Compression",
    "frontend.middleware.ContentSecurityPolicy",
    "frontend.middleware.StaticFiles",
    "frontend.ui.outage.DatabaseOutage",
    "kcoord.access.audit.requests.Audited",
    "kcoord.door.http.hooks.Sessions",
    "kcoord.door.http.hooks.Common",
    "django.middleware.csrf.CsrfViewMiddleware",
    "kcoord.door.http.hooks.Authentication",
    "kcoord.door.http.hooks.Messages",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "kcoord.urls"
ASGI_APPLICATION = "kcoord.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # Before those of the theme, which belong to an app that has to come before Django's admin.
        # Those of the dashboard stand beside their views: the name of one is its path.
        "DIRS": [Path(__file__).parent / "control" / "templates", Path(__file__).parents[1]],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

CONNINFO = libpq_conninfo(KCOORD.str("database.url"), DATA_DIR)
DATABASES = {"default": django_database(CONNINFO)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AUTHENTICATION_BACKENDS = [
    "frontend.identity.backends.PasswordBackend",
    *(["frontend.identity.backends.ProviderBackend"] if KCOORD.str("oidc.issuer") else []),
]
LOGIN_URL = "frontend:login"
LOGIN_REDIRECT_URL = "frontend:home"
LOGOUT_REDIRECT_URL = "frontend:login"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [Path(__file__).parent / "control" / "static"]
WHITENOISE_USE_FINDERS = True

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = KCOORD.bool("secure.cookies")
CSRF_COOKIE_SECURE = KCOORD.bool("secure.cookies")
CSRF_COOKIE_HTTPONLY = True
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# `check --deploy` names only what a setting of ours can change.
SILENCED_SYSTEM_CHECKS = [
    "security.W004",  # HSTS: a promise about every service of the host name, so the proxy with the certificate makes it
    "security.W008",  # redirects to https: the server speaks plain HTTP, and the proxy in front of it redirects
    "security.W009",  # the length of the key: kcoord.E003 checks it, and names the variable
    "security.W012",  # cookies over http: kcoord.W001 and W004 name the setting
    "security.W016",  # the same for the cookie of forms
]

# DeleteGroups takes a thousand ids in its query, and rejects more itself.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2_000

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["kcoord.control.rest.base.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["kcoord.control.rest.base.HasToken"],
    "DEFAULT_RENDERER_CLASSES": ["kcoord.control.rest.base.AnswerRenderer"],
    "DEFAULT_PARSER_CLASSES": ["kcoord.control.rest.base.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "kcoord.control.rest.base.problem_handler",
    "UNAUTHENTICATED_USER": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "kcoord",
    "DESCRIPTION": "Kafka's group coordinator as a web service on Postgres.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "POSTPROCESSING_HOOKS": ["kcoord.control.openapi.document.add_data_plane"],
    "COMPONENT_SPLIT_PATCH": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
}

UNFOLD = admin_theme.UNFOLD

CELERY_BROKER_URL = KCOORD.str("broker.url") or "kcoord://"
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {}
    if KCOORD.str("broker.url")
    else {
        # kcoord.database.queue_transport hands it to libpq as it is.
        "conn_string": CONNINFO,
        "visibility_timeout": 300,
        # No long poll: its statement holds locks that creating the queue waits for, and delays a stop. No NOTIFY: every
        # connection that declares the queue would listen, including beat's, which never reads; then its backend blocks,
        # and with it CREATE and DROP DATABASE in the whole cluster.
        "wait_time_seconds": 0,
        "use_notify": False,
        "polling_interval": 0.25,
        "pool_size": 4,
    }
)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "kcoord"
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_BEAT_MAX_LOOP_INTERVAL = 1
_TICK_SECONDS = KCOORD.int("timer.tick.interval.ms") / 1000
_RETENTION_SECONDS = KCOORD.int("offsets.retention.check.interval.ms") / 1000
_SAMPLE_SECONDS = KCOORD.int("lag.sample.interval.ms") / 1000
_CHECK_SECONDS = KCOORD.int("verdict.check.interval.ms") / 1000
_ALERT_SECONDS = KCOORD.int("alerts.check.interval.ms") / 1000


def _every(task: str, seconds: float, expire_seconds: int | None = None) -> dict[str, object]:
    """A run that waits longer than `expire_seconds`, by default until the next one is due, is dropped."""
    return {"task": task, "schedule": seconds, "options": {"expire_seconds": expire_seconds or max(1, round(seconds))}}


def _hourly(task: str) -> dict[str, object]:
    return _every(task, 3600.0, 1800)


_TICK_EXPIRES = max(1, round(_TICK_SECONDS)) * 2

# The database scheduler reads `expire_seconds`; it silently drops Celery's own `expires`.
CELERY_BEAT_SCHEDULE = {
    "groups: expire what is due": _every("groups.tick_due_groups", _TICK_SECONDS, _TICK_EXPIRES),
    "offsets: remove what has expired": _every("offsets.expire", _RETENTION_SECONDS),
    "offsets: abort abandoned transactions": _every("offsets.abort_abandoned_transactions", 10.0, 20),
    "offsets: end locks of items": _every("offsets.end_locks", _TICK_SECONDS, _TICK_EXPIRES),
    "offsets: forget idle producers": _hourly("offsets.forget_idle_producers"),
    "offsets: keep the days of the journal": _hourly("offsets.keep_journal_days"),
    "offsets: sample watermarks and lag": _every("offsets.sample", _SAMPLE_SECONDS),
    "offsets: judge groups by their members": _every("offsets.check_members", _CHECK_SECONDS),
    "offsets: judge groups by their offsets": _every("offsets.check_offsets", _SAMPLE_SECONDS),
    "offsets: check alerts": _every("offsets.check_alerts", _ALERT_SECONDS),
    "offsets: send alerts": _every("offsets.send_alerts", 15.0),
    "offsets: thin samples": _hourly("offsets.thin_samples"),
    "offsets: drop old plans": _hourly("offsets.trim_plans"),
    "offsets: sweep deleted topics": _every("offsets.sweep_deleted_topics", 10.0),
    "groups: drop old events": _hourly("groups.trim_events"),
    "audit: drop old records": _hourly("kcoord.trim_audit"),
}
