/**
 * What each variable of the service is for, and which programs read it. `.env.example` is generated from this, and a test
 * compares docker-compose.yml with it. docs/operating.md has the details.
 */
import type { Values } from './variables.ts'

export type ProgramName = 'api' | 'worker' | 'site'

export interface VariableReference {
  readonly readers: readonly ProgramName[]
  /** One or two sentences. */
  readonly text: string
}

type Section = Readonly<Record<string, VariableReference>>

const readBy =
  (...readers: ProgramName[]) =>
  (text: string): VariableReference => ({ readers, text })

const api = readBy('api')
const worker = readBy('worker')
const site = readBy('site')
const apiAndWorker = readBy('api', 'worker')
const apiAndSite = readBy('api', 'site')
const all = readBy('api', 'worker', 'site')

const addresses = {
  PORT: api('Port of the api.'),
  SVC_SITE_PORT: site('Port of the site.'),
  SVC_API_URL: all('Api: its public URL. Worker: the URL that relays report to. Site: the URL where it calls the api.'),
  SVC_SITE_URL: all('Public URL of the site: the base of links in mails and plugins, and of OAuth redirect URIs.'),
  SVC_TRUSTED_PROXY_HOPS: apiAndSite('Number of entries of X-Forwarded-For to trust, counted from the right.'),
  SVC_DRAIN_SECONDS: apiAndSite(
    'Time after SIGTERM in which requests are still served while /readyz answers 503. More than two health check intervals.',
  ),
} satisfies Section

const pages = {
  SVC_BRAND_NAME: all('Name of the service on pages and in mails.'),
  SVC_SUPPORT_EMAIL: site('Address for questions, shown on the help page.'),
  SVC_PLAN_PRICE: site('Price of the paid plan per month on pages, such as 14.99. Without it pages name no price.'),
  SVC_ADDON_PRICE: site('Price of an add-on per month on pages. The billing provider decides what is charged.'),
  SVC_CURRENCY: site('ISO 4217 code of both prices.'),
} satisfies Section

const servers = {
  NODE_ENV: apiAndWorker('With production the billing provider must be set, and its test mode does not count.'),
  LOG_LEVEL: all('fatal, error, warn, info, debug, trace or silent.'),
  PATH: worker('Where relays on this machine find srt-live-transmit.'),
  SVC_DATA_DIR: worker('Folder of the records of local relays and their logs.'),
  DATABASE_URL: apiAndWorker('postgres:// URL of the database, with the parameters that its provider prints.'),
  SVC_DATABASE_POOL: apiAndWorker('Maximum connections of one process. An api has one more for notifications.'),
  TEMPORAL_ADDRESS: apiAndWorker('host:port of the Temporal server.'),
  TEMPORAL_NAMESPACE: apiAndWorker('Namespace at the Temporal server.'),
  TEMPORAL_API_KEY: apiAndWorker('For a Temporal server that requires a key; implies TLS.'),
  TEMPORAL_TLS: apiAndWorker('Whether to use TLS with the certificate authorities of the system.'),
  TEMPORAL_TLS_CA: apiAndWorker('Certificate authority of the Temporal server, PEM.'),
  TEMPORAL_TLS_CERT: apiAndWorker('Client certificate for Temporal, PEM; requires the key.'),
  TEMPORAL_TLS_KEY: apiAndWorker('Client key for Temporal, PEM.'),
  SVC_TEMPORAL_TASK_QUEUE: apiAndWorker('Task queue of the workflows and activities.'),
  SVC_WORKER_BUILD_ID: worker(
    'Version for Worker Deployment Versioning of Temporal, such as the tag of the image. Without it the worker is unversioned.',
  ),
  SVC_WORKER_DEPLOYMENT: worker('Name of the deployment in Temporal that the version of the worker belongs to.'),
  SVC_WORKER_ALIVE_FILE: worker('File that is replaced every 5 s while the event loop runs, for probes.'),
  SVC_WORKER_METRICS_ADDRESS: worker('ip:port where Prometheus reads the metrics of the Temporal SDK.'),
  SVC_TEMPORAL_UI_URL: api('Base of the links to workflows in the API of operators.'),
} satisfies Section

const secrets = {
  SVC_JWT_SECRET: apiAndWorker('Signs access tokens; at least 32 bytes.'),
  SVC_JWT_SECRET_PREVIOUS: api('Still accepted during a rotation of the secret.'),
  SVC_RELAY_AUTH_SECRET: apiAndWorker('Master secret of the relays; new,old during a rotation.'),
  OAUTH_ENCRYPTION_KEY: apiAndWorker('32 random bytes in base64 or hex, which encrypt the tokens in the database.'),
  SVC_OPERATOR_PASSWORD: api('At least 12 characters. Without it the routes of operators do not exist.'),
} satisfies Section

const accounts = {
  SVC_JWT_TTL_SECONDS: api('How long an access token is valid, 600 to 900.'),
  SVC_OPERATOR_SESSION_SECONDS: api('The longest time that an operator stays signed in, 60 to 43200.'),
  SVC_REQUIRE_EMAIL_VERIFICATION: api('Whether an account can sign in only after its address is verified.'),
  SVC_ACCOUNT_DELETION_SECONDS: api('Time in which the deletion of an account can be taken back; 7 days.'),
  SVC_RATE_LIMITS: api('Requests a minute that override the defaults: relay_start=6,login=5.'),
} satisfies Section

const redirectUri = (provider: string) =>
  `Without it, sign-in with the provider is not available. Redirect URI: SVC_SITE_URL + /oauth/${provider}/callback.`

const oauth = {
  SVC_TWITCH_CLIENT_ID: apiAndWorker(`OAuth client id at Twitch. ${redirectUri('twitch')}`),
  SVC_TWITCH_CLIENT_SECRET: apiAndWorker('Required with the client id.'),
  SVC_TWITCH_ISSUER_URL: apiAndWorker('Base URL of Twitch; changed in tests.'),
  SVC_GOOGLE_CLIENT_ID: apiAndWorker(`OAuth client id at Google. ${redirectUri('google')}`),
  SVC_GOOGLE_CLIENT_SECRET: apiAndWorker('Required with the client id.'),
  SVC_GOOGLE_ISSUER_URL: apiAndWorker('Base URL of Google; changed in tests.'),
  SVC_DISCORD_CLIENT_ID: apiAndWorker(`OAuth client id at Discord. ${redirectUri('discord')}`),
  SVC_DISCORD_CLIENT_SECRET: apiAndWorker('Required with the client id.'),
  SVC_DISCORD_ISSUER_URL: apiAndWorker('Base URL of Discord; changed in tests.'),
} satisfies Section

const email = {
  SVC_SMTP_URL: apiAndWorker(
    'smtps://user:password@host (port 465) or smtp://user:password@host (STARTTLS, port 587). Without it no mail is sent.',
  ),
  SVC_MAIL_FROM: worker('Sender of all mails, Name <address>.'),
  SVC_LOG_LINKS: apiAndWorker('Without SVC_SMTP_URL: whether the links of mails are written to the log.'),
  SVC_MAILBOX: all('Keeps all mails readable on the page /mailbox, for everyone. For npm start only.'),
} satisfies Section

const relays = {
  SVC_REGIONS: apiAndWorker('Regions that relays are started in: a JSON array (docs/operating.md, "Regions").'),
  SVC_FLEET_NAME: worker(
    'Name of this control plane in the accounts of its clouds, such as production: it manages instances with this name only.',
  ),
  SVC_EPOCH: worker(
    'A text that you change whenever the database is restored in another way than with deploy/restore.sh (docs/backup.md): relays with a stream are then kept for a day.',
  ),
  SVC_HETZNER_TOKEN: worker('API token, for regions with the provider hetzner.'),
  SVC_HETZNER_API_URL: worker('Base URL of the API of Hetzner Cloud; changed in tests.'),
  SVC_RELAY_ENGINE: apiAndWorker('SRT engine of relays: srt-live-transmit, sls, none, or auto.'),
  SVC_RELAY_SRT_PASSPHRASE: apiAndWorker(
    '10 to 79 letters, digits, dots, hyphens and underscores: encrypts all streams.',
  ),
  SVC_RELAY_SLS_API_URL: apiAndWorker('Base URL of the HTTP API of the SLS server, for the engine sls.'),
  SVC_RELAY_SLS_API_KEY: apiAndWorker('A key of that API.'),
  SVC_RELAY_SLS_PUBLISH_PORT: apiAndWorker('UDP port of that server for publishers.'),
  SVC_RELAY_SLS_PLAY_PORT: apiAndWorker('UDP port of that server for players.'),
  SVC_RELAY_PROVISION_TIMEOUT_SECONDS: apiAndWorker('A relay that has not reported by then is given up.'),
  SVC_RELAY_HEALTH_INTERVAL_SECONDS: apiAndWorker('Interval of health reports.'),
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: apiAndWorker('Time without a report after which health counts as lost.'),
  SVC_RELAY_GRACE_SECONDS: apiAndWorker('Grace after lost health.'),
  SVC_RELAY_STOP_GRACE_SECONDS: apiAndWorker('Grace after a stop, in which a start resumes the same relay.'),
  SVC_RELAY_MAX_SESSION_SECONDS: apiAndWorker('A session of this age ends as soon as no stream comes in.'),
} satisfies Section

const billing = {
  SVC_BILLING_PROVIDER: apiAndWorker('sandbox (no real payments), lemonsqueezy or stripe (docs/billing.md).'),
  SVC_BILLING_WEBHOOK_SECRET: apiAndWorker('Verifies the webhooks of the provider; new,old during a rotation.'),
  SVC_BILLING_PORTAL_URL: apiAndWorker('https:// page for invoices and cancellation, where the provider offers none.'),
  SVC_BILLING_TEST_MODE: apiAndWorker('Whether events of the test mode of the provider count.'),
  SVC_LEMONSQUEEZY_API_KEY: apiAndWorker('Required with the provider lemonsqueezy.'),
  SVC_LEMONSQUEEZY_STORE_ID: apiAndWorker('Required with the provider lemonsqueezy.'),
  SVC_LEMONSQUEEZY_PLAN_VARIANT_ID: apiAndWorker('Required with the provider lemonsqueezy.'),
  SVC_LEMONSQUEEZY_ADDON_VARIANT_ID: apiAndWorker('Required with the provider lemonsqueezy.'),
  SVC_STRIPE_API_KEY: apiAndWorker('Required with the provider stripe.'),
  SVC_STRIPE_API_URL: apiAndWorker('Base URL of the API of Stripe; changed in tests.'),
  SVC_STRIPE_PLAN_PRICE_ID: apiAndWorker('Required with the provider stripe.'),
  SVC_STRIPE_ADDON_PRICE_ID: apiAndWorker('Required with the provider stripe.'),
  SVC_PAYMENT_GRACE_SECONDS: apiAndWorker('How long paid access continues after a failed payment; 48 hours.'),
  SVC_ADDON_NOTICE_SECONDS: apiAndWorker('Time between a reduction of add-ons and the end of relays above the limit.'),
  SVC_TIME_BANK_HOURS_PER_RELAY: all('Included hours per cycle for each relay of the plan. Pages name them.'),
  SVC_TIME_BANK_ENFORCEMENT: all('report, or enforce: an account without hours left cannot start a relay.'),
} satisfies Section

const retention = {
  SVC_RETENTION_SESSION_DAYS: worker('Ended relay sessions are deleted after this time, 35 at least.'),
  SVC_RETENTION_INSTANCE_DAYS: worker('Rows of instances that are gone, 7 at least.'),
  SVC_RETENTION_AUDIT_DAYS: worker('Audit entries, 30 at least.'),
  SVC_RETENTION_SIGN_IN_DAYS: worker('Sign-ins that have ended, 31 at least.'),
  SVC_RETENTION_MESSAGE_DAYS: worker('Messages to users that were delivered or given up.'),
  SVC_RETENTION_BILLING_BODY_DAYS: worker('Bodies of billing webhooks that were applied or ignored.'),
  SVC_RETENTION_BILLING_DAYS: worker('Billing events of erased accounts: the period of the tax law of your country.'),
} satisfies Section

const traces = {
  OTEL_EXPORTER_OTLP_ENDPOINT: apiAndWorker(
    'URL of an OTLP collector, such as http://collector:4318. Without it there are no traces.',
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: apiAndWorker(
    'The same with the complete path, such as http://collector:4318/v1/traces.',
  ),
  OTEL_EXPORTER_OTLP_HEADERS: apiAndWorker('Headers for the collector: name=value,name=value.'),
  OTEL_SERVICE_NAME: apiAndWorker('Name of the service in traces, in place of relay-control-plane-api and -worker.'),
  OTEL_RESOURCE_ATTRIBUTES: apiAndWorker('Further attributes of the processes: name=value,name=value.'),
  OTEL_TRACES_SAMPLER: apiAndWorker('Which requests are traced, such as parentbased_traceidratio. All by default.'),
  OTEL_TRACES_SAMPLER_ARG: apiAndWorker('The ratio of that sampler, such as 0.1.'),
  OTEL_SDK_DISABLED: apiAndWorker('true turns traces off.'),
} satisfies Section

/** Every variable of the schema, in the order of `.env.example`. */
export const variableSections = {
  'Addresses and proxies': addresses,
  'Texts of pages and mails': pages,
  'Servers and processes': servers,
  Secrets: secrets,
  Accounts: accounts,
  'Sign-in with a provider': oauth,
  Email: email,
  Relays: relays,
  Billing: billing,
  Retention: retention,
  Traces: traces,
} as const

/** The same by name. */
export const variableReference = {
  ...addresses,
  ...pages,
  ...servers,
  ...secrets,
  ...accounts,
  ...oauth,
  ...email,
  ...relays,
  ...billing,
  ...retention,
  ...traces,
} as const satisfies Record<keyof Values, VariableReference>
