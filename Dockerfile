# rageval in a container: as another user than root, and with a root file system that may be read-only.
#
#   docker build --tag rageval .
#   docker run --rm --read-only --tmpfs /tmp --user "$(id -u):$(id -g)" --volume "$PWD:/work" rageval run
#   docker run --rm --read-only --tmpfs /tmp --user "$(id -u):$(id -g)" --volume "$PWD:/work" \
#       --publish 127.0.0.1:8765:8765 --env RAGEVAL_WEB_TOKEN rageval web --host 0.0.0.0

FROM python:3.13-slim-bookworm AS build
WORKDIR /source
COPY requirements/web.txt requirements/web.txt
RUN python -m venv /opt/rageval \
    && /opt/rageval/bin/pip install --no-cache-dir --require-hashes --requirement requirements/web.txt
COPY pyproject.toml README.md LICENSE THIRD-PARTY.md ./
COPY pytest_rageval pytest_rageval
COPY docs docs
COPY evalcases evalcases
COPY reports/baseline.json reports/baseline.json
RUN /opt/rageval/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /dist . \
    && /opt/rageval/bin/pip install --no-cache-dir --no-deps /dist/*.whl

FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="pytest-rageval" \
      org.opencontainers.image.source="https://github.com/pytest-rageval/pytest-rageval" \
      org.opencontainers.image.licenses="MIT AND 0BSD"
RUN useradd --uid 10001 --create-home rageval \
    && mkdir -p /work \
    && chown rageval /work
COPY --from=build /opt/rageval /opt/rageval
ENV PATH=/opt/rageval/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001
WORKDIR /work
EXPOSE 8765
ENTRYPOINT ["rageval"]
CMD ["--help"]
