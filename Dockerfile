# Console and workers in one image, the executor in a second: docs/containers.md.
#   docker build -t xxl-job .
#   docker build -t xxl-job-executor --target executor .
# Both are installed from the wheels that `make dist` builds; nothing of the checkout is in them.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS python
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# the same number on every host, for the owner of volumes
RUN groupadd --system --gid 10001 xxl-job \
    && useradd --system --uid 10001 --gid 10001 --home-dir /var/lib/xxl-job --shell /usr/sbin/nologin xxl-job \
    && install --directory --mode 0700 --owner xxl-job --group xxl-job /var/lib/xxl-job

FROM python AS tools
ARG DEBIAN_FRONTEND=noninteractive
ARG PIP_INDEX_URL
RUN apt-get update && apt-get install --yes --no-install-recommends python3-venv
# wheels only, each checked by its hash: nothing is compiled. The authorities are the system's, so those of BASE too
ENV PIP_ONLY_BINARY=:all: PIP_NO_CACHE_DIR=1 PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
    PIP_DISABLE_PIP_VERSION_CHECK=1

# the wheels of server and client
FROM tools AS wheels
WORKDIR /src
# packages and browser assets in a layer of their own, which changes of the program leave alone
COPY manage.py requirements.txt requirements-dev.txt requirements-assets.txt ./
# the builders of both wheels and what they need; a build names one that is missing here
RUN python3 manage.py setup \
    && awk '/^[a-z]/ { kept = $1 ~ "^(hatchling|packaging|pathspec|pluggy|setuptools|tomlkit|trove-classifiers)==" } kept' \
        requirements-dev.txt >builders.txt \
    && .venv/bin/python -m pip install --quiet --require-hashes --requirement builders.txt
COPY . .
RUN python3 manage.py translations compile \
    && .venv/bin/python -m pip wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir /wheels \
        . ./executor_client

FROM tools AS install
COPY requirements.txt requirements-dev.txt ./
# with the extra s3: logs that outlive a pod lie in a bucket
RUN awk '/^[a-z]/ { kept = $1 ~ "^(minio|pycryptodome)==" } kept' requirements-dev.txt >s3.txt \
    && python3 -m venv /opt/duetime \
    && /opt/duetime/bin/python -m pip install --quiet --require-hashes \
        --requirement requirements.txt --requirement s3.txt
COPY --from=wheels /wheels /wheels
# pip compares what the wheels require with what is there, and goes
RUN /opt/duetime/bin/python -m pip install --quiet --no-index --no-deps /wheels/*.whl \
    && /opt/duetime/bin/python -m pip check \
    && /opt/duetime/bin/python -m pip uninstall --yes --quiet pip setuptools

# keeps pip, for the packages of your handlers
FROM tools AS install-executor
COPY requirements.txt ./
# Flask, waitress, urllib3, certifi and what they need
RUN awk '/^[a-z]/ { kept = $1 ~ "^(flask|waitress|urllib3|certifi|blinker|click|itsdangerous|jinja2|markupsafe" \
        "|werkzeug)==" } kept' requirements.txt >executor.txt \
    && python3 -m venv /opt/duetime \
    && /opt/duetime/bin/python -m pip install --quiet --require-hashes --requirement executor.txt
COPY --from=wheels /wheels /wheels
RUN /opt/duetime/bin/python -m pip install --quiet --no-index --no-deps /wheels/duetime_executor-*.whl \
    && /opt/duetime/bin/python -m pip check

FROM python AS executor
COPY --from=install-executor /opt/duetime /opt/duetime
ENV PATH=/opt/duetime/bin:$PATH PYTHONPATH=/app \
    XXL_JOB_HOME=/var/lib/xxl-job XXL_JOB_EXECUTOR_HOST=0.0.0.0 XXL_JOB_EXECUTOR_PORT=9999
WORKDIR /app
USER 10001:10001
VOLUME /var/lib/xxl-job
EXPOSE 9999
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import os, socket; socket.create_connection(('127.0.0.1', int(os.environ['XXL_JOB_EXECUTOR_PORT'])), 3)"]
ENTRYPOINT ["python", "-m", "executor_client"]
CMD ["executor_client.demo"]

# last: what `docker build` makes without --target
FROM python AS server
# a volume of its own there belongs to the user too
RUN install --directory --mode 0700 --owner xxl-job --group xxl-job /var/lib/xxl-job/log-archive
COPY --from=install /opt/duetime /opt/duetime
# the program is what is installed, whatever the current folder has
ENV PATH=/opt/duetime/bin:$PATH PYTHONSAFEPATH=1 \
    XXL_JOB_HOME=/var/lib/xxl-job XXL_JOB_HOST=0.0.0.0 XXL_JOB_PORT=8080
WORKDIR /opt/duetime
USER 10001:10001
VOLUME /var/lib/xxl-job
EXPOSE 8080
HEALTHCHECK --interval=60s --timeout=30s --start-period=60s CMD ["python", "-m", "app.container.health"]
ENTRYPOINT ["python", "-m", "app.container"]
CMD ["all"]
