# The stack in one container: server, worker and beat under their supervisor. Point it to a Postgres with
# KCOORD_DATABASE_URL; without one the embedded server keeps its files in /data.
FROM python:3.12-slim

ENV PYTHONDONTWRITEBYTECODE=1 \
    KCOORD_HOST=0.0.0.0 \
    KCOORD_DATA_DIR=/data

WORKDIR /app
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt
COPY . .
RUN python -m compileall -q . \
    && useradd --system --uid 10001 --no-create-home kcoord \
    && install -d -o kcoord -m 0700 /data

USER kcoord
VOLUME /data
EXPOSE 8000
# Alive, not ready: an outage of Postgres must not become a restart.
HEALTHCHECK --start-period=30s CMD ["python", "-m", "kcoord.stack.alive"]
ENTRYPOINT ["python", "-m", "kcoord.stack"]
