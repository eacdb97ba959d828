# server, worker, beat and migrate in one image: the command is `python -m kcoord.stack.run ROLE` (docs/deployment.md).
# Without a command it runs all of them and a Postgres of its own under one supervisor, with its files in /data.
# The target `service` is without the packages of Spark jobs: for server, beat and migrate.
FROM python:3.12.12-slim-bookworm AS service-packages

WORKDIR /build
COPY requirements.txt ./
COPY deploy ./deploy
RUN python -m venv --without-pip /opt/kcoord \
    && pip --python /opt/kcoord/bin/python install --no-cache-dir --only-binary :all: -r deploy/requirements-service.txt -r deploy/requirements-otlp.txt

FROM service-packages AS packages

# Nothing is compiled: only pyspark has no wheel, and it is plain Python.
RUN pip --python /opt/kcoord/bin/python install --no-cache-dir --only-binary :all: --no-binary pyspark -r requirements.txt

FROM python:3.12.12-slim-bookworm AS application

ENV PATH=/opt/kcoord/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    KCOORD_HOST=0.0.0.0 \
    KCOORD_DATA_DIR=/data

WORKDIR /app
COPY manage.py LICENSE ./
COPY kcoord ./kcoord
COPY groups ./groups
COPY offsets ./offsets
COPY frontend ./frontend
RUN python -m compileall -q . \
    && useradd --system --uid 10001 --no-create-home kcoord \
    && install -d -o kcoord -m 0700 /data \
    && pip uninstall --yes --quiet --root-user-action=ignore pip

USER 10001
VOLUME /data
EXPOSE 8000
# Of the server. Alive, not ready: an outage of Postgres must not become a restart.
HEALTHCHECK --start-period=30s CMD ["python", "-m", "kcoord.stack.alive"]
CMD ["python", "-m", "kcoord.stack"]

FROM application AS service

COPY --from=service-packages /opt/kcoord /opt/kcoord

FROM application

COPY --from=packages /opt/kcoord /opt/kcoord
