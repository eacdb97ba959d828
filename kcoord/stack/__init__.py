"""Everything under one supervisor: embedded Postgres, server, Celery worker and beat (`make up`).

Nothing here is imported by the services; it starts them.
"""
