/** Variables that docker-compose.yml alone reads, and variables that it sets itself. */

export interface ComposeVariable {
  readonly text: string
  /** What the file uses when the variable is not set; undefined for an empty value. */
  readonly default?: string
}

export const composeVariables = {
  SVC_SITE_HOST: {
    text: 'Host name of the site. Names under localhost get a certificate of a local authority.',
    default: 'localhost',
  },
  SVC_API_HOST: { text: 'Host name of the API, for plugins, relays and webhooks.', default: 'api.localhost' },
  SVC_API_URL: {
    text: 'Public URL of the API and the issuer of its tokens, when it is not https:// and the host name.',
    default: 'https://api.localhost',
  },
  SVC_SITE_URL: {
    text: 'Public URL of the site, the base of all links, when it is not https:// and the host name.',
    default: 'https://localhost',
  },
  SVC_OPERATOR_NETWORKS: {
    text: 'Networks that may open /operator, /api/v1/admin, /metrics and /health, separated by spaces: 203.0.113.7 2001:db8::/48. None by default.',
    default: '255.255.255.255',
  },
  SVC_EDGE_IPV6: {
    text: 'true when the host names have AAAA records, so that IPv6 clients keep their addresses.',
    default: 'false',
  },
  SVC_HTTP_PORT: { text: 'Port of this machine that redirects to HTTPS. Certificates need 80.', default: '80' },
  SVC_HTTPS_PORT: { text: 'Port of this machine for HTTPS, TCP and UDP.', default: '443' },
  SVC_RELAY_API_URL: {
    text: 'URL of the API for relays. For regions in a cloud: https:// and SVC_API_HOST.',
    default: 'http://api:8080',
  },
  SVC_PROMETHEUS_RETENTION: { text: 'How long Prometheus keeps samples.', default: '30d' },
  SVC_VERSION: { text: 'Tag of the image that is built and run.', default: 'local' },
  AWS_ACCESS_KEY_ID: {
    text: 'Read by: worker. Credentials for regions with the provider aws (docs/relays.md, "AWS").',
  },
  AWS_SECRET_ACCESS_KEY: { text: 'Read by: worker. Required with the key id.' },
  AWS_SESSION_TOKEN: { text: 'Read by: worker. With temporary credentials only.' },
  NODE_EXTRA_CA_CERTS: {
    text: 'Read by: api, worker. File with a private certificate authority of the mail server, mounted into the containers.',
  },
} as const satisfies Record<string, ComposeVariable>

/** Variables of the schema that docker-compose.yml sets to a fixed value, each with the reason. */
export const fixedVariables: Readonly<Record<string, string>> = {
  NODE_ENV: 'set by the image',
  PATH: 'set by the image',
  SVC_DATA_DIR: 'set by the image, a volume of the worker',
  PORT: 'the edge connects to it',
  SVC_SITE_PORT: 'the edge connects to it',
  DATABASE_URL: 'a secret file',
  SVC_JWT_SECRET: 'a secret file',
  SVC_RELAY_AUTH_SECRET: 'a secret file',
  OAUTH_ENCRYPTION_KEY: 'a secret file',
  SVC_OPERATOR_PASSWORD: 'a secret file',
  SVC_BILLING_WEBHOOK_SECRET: 'a secret file',
  SVC_WORKER_ALIVE_FILE: 'the health check of the file reads it',
  SVC_WORKER_METRICS_ADDRESS: 'Prometheus of the file scrapes it',
  SVC_MAILBOX: 'refused in production',
}

/** Defaults of docker-compose.yml that differ from those of the programs. */
export const composeDefaults: Readonly<Record<string, string>> = {
  TEMPORAL_ADDRESS: 'temporal:7233',
  SVC_BILLING_PROVIDER: 'sandbox',
  SVC_TRUSTED_PROXY_HOPS: '1',
  SVC_DRAIN_SECONDS: '5',
}
