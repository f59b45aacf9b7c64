# An image of the program, built from the published package; no checkout is needed:
#   docker build --tag "$IMAGE" - < Dockerfile
# For another version: --build-arg PACKAGE=@resilient-watcher/cli@0.2.0. For the tarballs that `npm pack --workspaces` creates in a checkout:
#   docker build --tag "$IMAGE" --build-arg PACKAGE="$(ls resilient-watcher*.tgz | sed 's|^|/context/|')" .
# It adds 6 MB (2 MB compressed) to node:24-alpine.
FROM node:24-alpine AS install
ARG PACKAGE=@resilient-watcher/cli@0.1.0
WORKDIR /app
# Includes the optional package for --listen. In a pod, token and kubeconfig need none; for their flag
# --kubeconfig, add @kubernetes/client-node@2.
RUN --mount=type=bind,target=/context \
    npm install --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund $PACKAGE prom-client@15 \
    # Half of it is declarations and source maps.
    && find node_modules -type f \( -name '*.ts' -o -name '*.d.cts' -o -name '*.map' -o -name '*.md' \) -delete

FROM node:24-alpine
COPY --from=install /app /app
# The user `node` of the image, by number, so that runAsNonRoot can be checked.
USER 1000:1000
ENTRYPOINT ["node", "/app/node_modules/@resilient-watcher/cli/bin.js"]
CMD ["--help"]
