/** All variables of the service, each with its kind of value and its default. */
import { z } from 'zod'
import { relayEngineSettings } from '../../domain/relay/engines.ts'
import { defaultRegions, regions } from './regions.ts'
import {
  buildId,
  currency,
  databaseUrl,
  days,
  deploymentName,
  encryptionKeys,
  flag,
  fleetNamePattern,
  httpsUrl,
  ipAddressWithPort,
  mailSender,
  port,
  price,
  rateLimits,
  seconds,
  secret,
  secretPair,
  smtpUrl,
  url,
  webhookSecrets,
} from './values.ts'

export const Variables = z.object({
  NODE_ENV: z.string().optional(),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  PATH: z.string().default(''),
  PORT: port(8080),
  SVC_SITE_PORT: port(8081),
  SVC_API_URL: url.optional(),
  SVC_SITE_URL: url.optional(),
  SVC_BRAND_NAME: z.string().trim().min(1).max(40).default('Backhaul'),
  SVC_SUPPORT_EMAIL: z.email().optional(),
  SVC_PLAN_PRICE: price.optional(),
  SVC_ADDON_PRICE: z.string().default('7.99').pipe(price),
  SVC_CURRENCY: z.string().default('USD').pipe(currency),
  SVC_DRAIN_SECONDS: seconds(0, 300, 0),
  SVC_DATA_DIR: z.string().min(1).default('.svc'),
  DATABASE_URL: databaseUrl,
  SVC_DATABASE_POOL: z.coerce.number().int().min(2).max(200).default(10),
  TEMPORAL_ADDRESS: z.string().regex(/^[^\s/]+:\d+$/, 'is not host:port'),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  TEMPORAL_API_KEY: z.string().min(1).optional(),
  TEMPORAL_TLS_CA: z.string().min(1).optional(),
  TEMPORAL_TLS_CERT: z.string().min(1).optional(),
  TEMPORAL_TLS_KEY: z.string().min(1).optional(),
  TEMPORAL_TLS: flag.default(false),
  SVC_TEMPORAL_TASK_QUEUE: z.string().min(1).default('relay-control-plane'),
  SVC_WORKER_ALIVE_FILE: z.string().min(1).optional(),
  SVC_WORKER_DEPLOYMENT: deploymentName.default('relay-control-plane'),
  SVC_WORKER_BUILD_ID: buildId.optional(),
  SVC_WORKER_METRICS_ADDRESS: ipAddressWithPort.optional(),
  // The SDK of OpenTelemetry reads these and its other variables itself.
  OTEL_SDK_DISABLED: flag.default(false),
  OTEL_EXPORTER_OTLP_ENDPOINT: url.optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url.optional(),
  OTEL_EXPORTER_OTLP_HEADERS: z.string().optional(),
  OTEL_SERVICE_NAME: z.string().min(1).optional(),
  OTEL_RESOURCE_ATTRIBUTES: z.string().optional(),
  OTEL_TRACES_SAMPLER: z.string().optional(),
  OTEL_TRACES_SAMPLER_ARG: z.string().optional(),
  SVC_TEMPORAL_UI_URL: url.default('http://localhost:8233'),
  SVC_JWT_SECRET: secret,
  SVC_JWT_SECRET_PREVIOUS: secret.optional(),
  SVC_JWT_TTL_SECONDS: seconds(600, 900, 720),
  OAUTH_ENCRYPTION_KEY: encryptionKeys,
  SVC_TWITCH_CLIENT_ID: z.string().min(1).optional(),
  SVC_TWITCH_CLIENT_SECRET: z.string().min(1).optional(),
  SVC_TWITCH_ISSUER_URL: url.default('https://id.twitch.tv/oauth2'),
  SVC_GOOGLE_CLIENT_ID: z.string().min(1).optional(),
  SVC_GOOGLE_CLIENT_SECRET: z.string().min(1).optional(),
  SVC_GOOGLE_ISSUER_URL: url.default('https://accounts.google.com'),
  SVC_DISCORD_CLIENT_ID: z.string().min(1).optional(),
  SVC_DISCORD_CLIENT_SECRET: z.string().min(1).optional(),
  SVC_DISCORD_ISSUER_URL: url.default('https://discord.com'),
  SVC_LOG_LINKS: flag.default(true),
  SVC_SMTP_URL: smtpUrl.optional(),
  SVC_MAIL_FROM: mailSender.optional(),
  SVC_MAILBOX: flag.default(false),
  SVC_OPERATOR_PASSWORD: z.string().min(12, 'is shorter than 12 characters').optional(),
  SVC_OPERATOR_SESSION_SECONDS: seconds(60, 43_200, 3600),
  SVC_RELAY_AUTH_SECRET: secretPair,
  SVC_REQUIRE_EMAIL_VERIFICATION: flag.default(false),
  SVC_REGIONS: z.string().default(defaultRegions).pipe(regions),
  SVC_FLEET_NAME: z
    .string()
    .regex(fleetNamePattern, 'is not 1 to 32 lower-case letters, digits and inner hyphens')
    .optional(),
  SVC_EPOCH: z
    .string()
    .regex(/^[\w.-]{1,64}$/, 'is not 1 to 64 letters, digits, dots, hyphens and underscores')
    .default('initial'),
  SVC_HETZNER_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'contains characters that are not allowed in a header')
    .optional(),
  SVC_HETZNER_API_URL: url.default('https://api.hetzner.cloud/v1'),
  SVC_RELAY_PROVISION_TIMEOUT_SECONDS: seconds(1, 3600, 300),
  SVC_RELAY_HEALTH_INTERVAL_SECONDS: seconds(1, 300, 10),
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: seconds(1, 3600, 45),
  SVC_RELAY_GRACE_SECONDS: seconds(1, 3600, 120),
  SVC_RELAY_STOP_GRACE_SECONDS: seconds(0, 3600, 30),
  SVC_RELAY_MAX_SESSION_SECONDS: seconds(5, 30 * 86_400, 57_600),
  SVC_RELAY_ENGINE: z.enum(relayEngineSettings).default('auto'),
  SVC_RELAY_SRT_PASSPHRASE: z
    .string()
    // Some programs decode the query of an SRT address and others do not, so only characters that need no encoding are allowed.
    .regex(/^[A-Za-z0-9._-]{10,79}$/, 'is not 10 to 79 letters, digits, dots, hyphens and underscores')
    .optional(),
  SVC_RELAY_SLS_API_URL: url.optional(),
  SVC_RELAY_SLS_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'contains characters that are not allowed in a header')
    .optional(),
  SVC_RELAY_SLS_PUBLISH_PORT: z.coerce.number().int().min(1).max(65_535).optional(),
  SVC_RELAY_SLS_PLAY_PORT: z.coerce.number().int().min(1).max(65_535).optional(),
  SVC_BILLING_PROVIDER: z.enum(['sandbox', 'lemonsqueezy', 'stripe']).optional(),
  SVC_BILLING_WEBHOOK_SECRET: webhookSecrets,
  SVC_BILLING_PORTAL_URL: httpsUrl.optional(),
  SVC_BILLING_TEST_MODE: flag.optional(),
  SVC_LEMONSQUEEZY_API_KEY: z.string().min(1).optional(),
  SVC_LEMONSQUEEZY_STORE_ID: z.string().regex(/^\d+$/, 'is not a number').optional(),
  SVC_LEMONSQUEEZY_PLAN_VARIANT_ID: z.string().regex(/^\d+$/, 'is not a number').optional(),
  SVC_LEMONSQUEEZY_ADDON_VARIANT_ID: z.string().regex(/^\d+$/, 'is not a number').optional(),
  SVC_STRIPE_API_KEY: z.string().min(1).optional(),
  SVC_STRIPE_API_URL: url.optional(),
  SVC_STRIPE_PLAN_PRICE_ID: z.string().min(1).optional(),
  SVC_STRIPE_ADDON_PRICE_ID: z.string().min(1).optional(),
  SVC_PAYMENT_GRACE_SECONDS: seconds(1, 30 * 86_400, 172_800),
  SVC_ADDON_NOTICE_SECONDS: seconds(1, 86_400, 1800),
  SVC_ACCOUNT_DELETION_SECONDS: seconds(1, 90 * 86_400, 604_800),
  // The least periods cover what rules of the service look back at: a usage cycle, and 30 days of sign-ins.
  SVC_RETENTION_SESSION_DAYS: days(35, 400),
  SVC_RETENTION_INSTANCE_DAYS: days(7, 400),
  SVC_RETENTION_AUDIT_DAYS: days(30, 400),
  SVC_RETENTION_SIGN_IN_DAYS: days(31, 90),
  SVC_RETENTION_MESSAGE_DAYS: days(1, 30),
  SVC_RETENTION_BILLING_BODY_DAYS: days(1, 90),
  SVC_RETENTION_BILLING_DAYS: days(365, 3650),
  SVC_TIME_BANK_ENFORCEMENT: z.enum(['report', 'enforce']).default('report'),
  SVC_TIME_BANK_HOURS_PER_RELAY: z.coerce.number().int().min(0).max(100_000).default(200),
  SVC_TRUSTED_PROXY_HOPS: z.coerce.number().int().min(0).max(10).default(0),
  SVC_RATE_LIMITS: z.string().default('').pipe(rateLimits),
})

/** The value of each variable, checked by itself. */
export type Values = z.infer<typeof Variables>
