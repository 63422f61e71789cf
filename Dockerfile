# The images of the two processes: `trigger` and `worker`, and the same with the example's jobs in them.
#
#   docker build --target worker --tag matins-worker .
#
# Your jobs go in on top, as in docs/deployment.md:
#
#   FROM matins-worker
#   COPY billing /app/billing

FROM python:3.13-slim AS base
# Bytecode is made in the build, since a running container can write nowhere but in /tmp.
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1


FROM base AS dependencies
RUN python -m venv /opt/matins
COPY requirements/runtime.txt /build/
# Wheels alone: no source is compiled, so that neither stage needs a compiler.
RUN /opt/matins/bin/python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes \
    --only-binary :all: --requirement /build/runtime.txt


FROM base AS sources
COPY LICENSE /sources/
COPY schemas /sources/schemas
COPY shared /sources/shared
COPY trigger /sources/trigger
COPY worker /sources/worker
COPY docs/runbook.md /sources/docs/
COPY examples/__init__.py /sources/examples/
COPY examples/billing /sources/examples/billing
# Readable by any user, whatever the modes are where this is built.
RUN chmod -R a+rX,go-w /sources && python -m compileall -q /sources


FROM base AS process
RUN groupadd --gid 10001 matins \
    && useradd --uid 10001 --gid matins --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin matins
COPY --from=dependencies /opt/matins /opt/matins
COPY --from=sources /sources/LICENSE /app/
COPY --from=sources /sources/schemas /app/schemas
COPY --from=sources /sources/shared /app/shared
# A health endpoint on the loopback interface of a container would answer nobody.
ENV PATH=/opt/matins/bin:$PATH \
    MATINS_HEALTH_ADDRESS=0.0.0.0:8080
EXPOSE 8080
WORKDIR /app
# A number, so that an orchestrator can see that it isn't root.
USER 10001:10001
STOPSIGNAL SIGTERM


# Started in /app, which `python -m` puts ahead of PYTHONPATH and of everything installed: whatever an image on top of
# this one adds, our packages are the ones imported, and another of the same name is found and refused at the start.
# That is why PYTHONSAFEPATH isn't set, and why an image on top may have any WORKDIR.
FROM process AS trigger
COPY --from=sources /sources/trigger /app/trigger
# The console shows an alert with its entry.
COPY --from=sources /sources/docs /app/docs
# For outside schedulers; nothing listens there until somebody may call.
ENV MATINS_API_ADDRESS=0.0.0.0:8081
EXPOSE 8081
ENTRYPOINT ["env", "--chdir=/app", "python", "-m", "trigger"]
CMD ["serve"]


FROM process AS worker
COPY --from=sources /sources/worker /app/worker
ENTRYPOINT ["env", "--chdir=/app", "python", "-m", "worker"]
CMD ["serve"]


FROM trigger AS example-trigger
COPY --from=sources /sources/examples /app/examples


FROM worker AS example-worker
COPY --from=sources /sources/examples /app/examples
