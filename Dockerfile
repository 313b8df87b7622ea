# The gateway in a container, for tests, demos and pipelines:
#
#   docker build --tag sandbox-sim .
#   docker run --rm --publish 127.0.0.1:8233:8233 --env SANDBOX_SIM_CONTROL_TOKEN=change-me sandbox-sim
#
# It listens on every address of the container, so it does not start without a token. Every setting
# is an environment variable, SANDBOX_SIM_ and its name. docs/docker.md says more.

FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY sandbox_sim sandbox_sim
RUN python -m venv /opt/sandbox-sim \
    && /opt/sandbox-sim/bin/pip install --no-cache-dir --constraint constraints.txt '.[metrics,postgres,smpp]'

FROM python:3.13-slim
COPY --from=build /opt/sandbox-sim /opt/sandbox-sim
RUN useradd --system --create-home --home-dir /var/lib/sandbox-sim gateway
USER gateway
ENV PATH=/opt/sandbox-sim/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    SANDBOX_SIM_HOST=0.0.0.0 \
    SANDBOX_SIM_PORT=8233 \
    SANDBOX_SIM_STORE=sqlite:/var/lib/sandbox-sim/sandbox-sim.sqlite3
VOLUME /var/lib/sandbox-sim
EXPOSE 8233
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s \
    CMD sandbox-sim --endpoint-url "${SANDBOX_SIM_ENDPOINT_URL:-http://127.0.0.1:$SANDBOX_SIM_PORT}" readyz
STOPSIGNAL SIGTERM
ENTRYPOINT ["sandbox-sim"]
CMD ["serve"]
