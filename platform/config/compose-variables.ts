/** Variables that docker-compose.yml alone reads. */
import type { VariableDescription } from './variable.ts'

const inCompose = (text: string, value: string): VariableDescription => ({
  readers: [],
  text,
  compose: { default: value },
})

export const composeVariables = {
  SVC_SITE_HOST: inCompose(
    'Host name of the site. Names under localhost get a certificate of a local authority.',
    'localhost',
  ),
  SVC_API_HOST: inCompose('Host name of the API, for plugins, relays and webhooks.', 'api.localhost'),
  SVC_OPERATOR_NETWORKS: inCompose(
    'Networks that may open `/operator`, `/api/v1/admin`, `/metrics` and `/health`, separated by spaces: `203.0.113.7 2001:db8::/48`. The default admits none.',
    '255.255.255.255',
  ),
  SVC_EDGE_IPV6: inCompose(
    '`true` when the host names have AAAA records, so that IPv6 clients keep their addresses and do not share one rate limit.',
    'false',
  ),
  SVC_HTTP_PORT: inCompose('Port of this machine that redirects to HTTPS. Certificates need 80.', '80'),
  SVC_HTTPS_PORT: inCompose('Port of this machine for HTTPS, TCP and UDP.', '443'),
  SVC_RELAY_API_URL: inCompose(
    '`SVC_API_URL` of the worker: the URL of the API for relays. For regions in a cloud: `https://` and `SVC_API_HOST`.',
    'http://api:8080',
  ),
  SVC_PROMETHEUS_RETENTION: inCompose('How long Prometheus keeps samples.', '30d'),
  SVC_VERSION: inCompose('Tag of the image that is built and run.', 'local'),
} as const
