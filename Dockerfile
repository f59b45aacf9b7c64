# The program as an image: docker build -t resilient-watcher:0.1.0 .
# It adds 6 MB (2 MB compressed) to node:24-alpine.
FROM node:24-alpine AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc tsconfig.json tsup.config.ts ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY src ./src
RUN npm run build && npm pack --ignore-scripts --pack-destination /

# With the optional packages that --config and --listen use. In a pod, token and kubeconfig need none; for their flag
# --kubeconfig add @kubernetes/client-node@2.
FROM node:24-alpine AS install
WORKDIR /app
COPY --from=build /resilient-watcher-*.tgz /
RUN npm install --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund \
      /resilient-watcher-*.tgz yaml@2 prom-client@15 \
    # Half of it is declarations and source maps.
    && find node_modules -type f \( -name '*.ts' -o -name '*.d.cts' -o -name '*.map' -o -name '*.md' \) -delete

FROM node:24-alpine
COPY --from=install /app /app
# The user `node` of the image, by number, so that runAsNonRoot can be checked.
USER 1000:1000
ENTRYPOINT ["node", "/app/node_modules/resilient-watcher/dist/cli/main.js"]
CMD ["--help"]
