/** The kinds of values that variables hold: how each is parsed, and the error message for an invalid one. */
import { createHash, createPrivateKey, type KeyObject } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'
import { z } from 'zod'
import { findDatabaseUrlProblems } from './database-files.ts'
import { parseSender, parseSmtpUrl } from './mail-values.ts'

/** The name of a fleet, which is the value of a label at every provider. */
export const fleetNamePattern = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/
export const fleetName = z
  .string()
  .regex(fleetNamePattern, 'is not 1 to 32 lower-case letters, digits and inner hyphens')

/** Requests per minute for each limit. `SVC_RATE_LIMITS` overrides them. */
export const rateLimitDefaults = {
  relay_start: 6,
  relay_stop: 20,
  relay_active: 60,
  /** The list of ended sessions, and one session with its transitions. */
  relay_history: 60,
  /** Uploads of images for connections. */
  slate_upload: 10,
  /** Look-ups by pair token from one network. */
  pair: 30,
  /** Look-ups by the token of a share link from one network. */
  shared: 60,
  /** Connections to `GET /relay/ws`. */
  relay_ws: 60,
  usage: 30,
  login: 5,
  /** Wrong passwords for one account; see `api/identity/login-failures.ts`. */
  login_failures: 20,
  signup: 5,
  forgot: 5,
  plugin_start: 10,
  plugin_poll: 300,
  oauth_start: 20,
  /** Authorization requests of apps from one network. */
  app_authorize: 60,
  /** Requests of apps for tokens, and to revoke them, from one network. */
  app_token: 120,
  /** What the OBS source reads, for one account. */
  ingests: 120,
  manifest: 60,
  capacity: 60,
  /** Incidents and their feed, from one network. */
  incidents: 60,
  checkout: 10,
  /** Cancelling a subscription and opening the provider's customer portal. */
  billing_manage: 10,
  /** Changes of what an account is notified of, and where. */
  notifications: 30,
  notification_test: 5,
  /** Uses of links that turn a notification off, from one network. */
  unsubscribe: 30,
  account_export: 5,
  /** Wrong operator passwords from one address. */
  operator: 5,
  /**
   * Wrong operator passwords from all networks together that no operator has signed in from recently; see
   * `api/identity/operator-credentials.ts`.
   */
  operator_failures: 30,
} as const

export type RateLimitName = keyof typeof rateLimitDefaults

export const nonEmpty = z.string().min(1)
export const headerText = z.string().regex(/^[\x21-\x7e]+$/, 'contains characters that are not allowed in a header')
/** A whole number. */
export const number = (min: number, max: number) => z.coerce.number().int().min(min).max(max)
export const seconds = (min: number, max: number, defaultValue: number) => number(min, max).default(defaultValue)
/** A retention period of at most a hundred years. */
export const days = (min: number, defaultValue: number) => number(min, 36_500).default(defaultValue)
export const port = (defaultValue: number) => number(0, 65_535).default(defaultValue)
export const url = z.url({ protocol: /^https?$/ }).transform((text) => text.replace(/\/+$/, ''))
export const databaseUrl = z.string().superRefine((text, context) => {
  for (const message of findDatabaseUrlProblems(text)) context.addIssue({ code: 'custom', message })
})
/** A URL that the site links to or redirects to. */
export const httpsUrl = z.url({ protocol: /^https$/, error: 'is not an https:// URL' })
/** A contact that pages link to. */
export const emailOrHttpsUrl = z.union([z.email(), httpsUrl], {
  error: 'is neither an email address nor an https:// URL',
})
/** An address to listen on. Names are refused, since the Temporal SDK resolves none. */
export const ipAddressWithPort = z.string().refine((text) => {
  const [, ipv6 = '', ipv4 = '', portText = ''] = /^(?:\[([^\]]*)\]|([\d.]*)):(\d{1,5})$/.exec(text) ?? []
  return (isIPv6(ipv6) || isIPv4(ipv4)) && Number(portText) > 0 && Number(portText) <= 65535
}, 'is not an IP address with a port, such as 0.0.0.0:9464')
export const flag = z.enum(['true', 'false']).transform((text) => text === 'true')

export const generateSecret = 'openssl rand -base64 48'
export const generateEncryptionKey = 'openssl rand -base64 32'

/** Text of at least 32 bytes that does not look like a placeholder from an example. */
export const secret = z
  .string()
  .refine((text) => Buffer.byteLength(text) >= 32, `is shorter than 32 bytes: generate one with \`${generateSecret}\``)
  .refine(
    (text) => !/change.?me|example|(secret){2}|^(.)\2+$/i.test(text),
    `is a placeholder: generate one with \`${generateSecret}\``,
  )

export const secretPair = z
  .string()
  .transform((text) => text.split(',').map((part) => part.trim()))
  .pipe(z.array(secret).min(1).max(2, 'has more than two secrets: keep the new one and the old one'))

/**
 * Secrets that billing providers sign webhooks with. Shorter than `secret`, since Lemon Squeezy allows only 40
 * characters.
 */
export const webhookSecrets = z
  .string()
  .transform((text) => text.split(',').map((part) => part.trim()))
  .pipe(
    z
      .array(
        z
          .string()
          .min(16, 'is shorter than 16 characters')
          .refine((text) => !/change.?me|example|^(.)\1+$/i.test(text), 'is a placeholder'),
      )
      .min(1)
      .max(2, 'has more than two secrets: keep the new one and the old one'),
  )

/** The name of a worker deployment in Temporal, which reserves dots and colons for versions. */
export const deploymentName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/, 'is not 1 to 63 letters, digits, hyphens and underscores')

/** The version of a worker within its deployment, such as the tag of an image or the id of a commit. */
export const buildId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'is not 1 to 63 letters, digits, dots, hyphens and underscores')

export const epoch = z.string().regex(/^[\w.-]{1,64}$/, 'is not 1 to 64 letters, digits, dots, hyphens and underscores')

/**
 * Some programs decode the query of an SRT address and others do not, so only characters that need no encoding are
 * allowed.
 */
export const srtPassphrase = z
  .string()
  .regex(/^[A-Za-z0-9._-]{10,79}$/, 'is not 10 to 79 letters, digits, dots, hyphens and underscores')

export const hostWithPort = z.string().regex(/^[^\s/]+:\d+$/, 'is not host:port')
export const domain = z
  .string()
  .toLowerCase()
  .regex(/^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/, 'is not a domain such as relays.example.net')

/** `host` or `host:port`, of a name server. */
export const nameServer = z.string().transform((text, context) => {
  const [, host, port = '53'] = /^([A-Za-z0-9.-]+)(?::(\d{1,5}))?$/.exec(text) ?? []
  if (host !== undefined && Number(port) <= 65_535) return { host, port: Number(port) }
  context.addIssue({ code: 'custom', message: 'is not a name or an IPv4 address, with a port or without' })
  return z.NEVER
})

/** `name:secret`, with the secret in base64. */
export const tsigKey = z.string().transform((text, context) => {
  const [, name, secretText = ''] = /^([A-Za-z0-9.-]+):([A-Za-z0-9+/]+=*)$/.exec(text) ?? []
  if (name !== undefined && Buffer.from(secretText, 'base64').length >= 16) return { name, secret: secretText }
  context.addIssue({ code: 'custom', message: 'is not name:secret with a secret of at least 16 bytes in base64' })
  return z.NEVER
})

export const numericId = z.string().regex(/^\d+$/, 'is not a number')

/** A price per month, with at most two decimals. */
export const price = z
  .string()
  .regex(/^\d{1,6}(\.\d{1,2})?$/, 'is not a price such as 7.99')
  .transform(Number)

/** An ISO 4217 code. */
export const currency = z
  .string()
  .regex(/^[A-Z]{3}$/, 'is not a currency code such as USD')
  .refine((code) => Intl.supportedValuesOf('currency').includes(code), 'is not a known currency')

/** Whether it has the format of Standard Webhooks 1.0, which the sandbox signs with. */
export const isStandardWebhookSecret = (text: string): boolean => {
  const [, base64 = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? []
  const { length } = Buffer.from(base64, 'base64')
  return length >= 24 && length <= 64
}

/** 32 random bytes, in base64 or hex. */
const encryptionKeyBytes = (text: string): Buffer | undefined => {
  const encoding = /^[0-9a-f]{64}$/i.test(text) ? 'hex' : /^[\w+/-]{43}=?$/.test(text) ? 'base64' : undefined
  const bytes = encoding && Buffer.from(text, encoding)
  // Random bytes practically never have so few different values; placeholders such as zeros do.
  return bytes && new Set(bytes).size > 8 ? bytes : undefined
}

export interface EncryptionKey {
  /** Prefix of everything that was encrypted with the key. Selects the key for decryption after a rotation. */
  readonly id: string
  /** 32 bytes, base64. */
  readonly key: string
}

/** One key, or `kid:key,kid:key`: the first one encrypts, all of them decrypt. */
export const encryptionKeys = z.string().transform((text, context): EncryptionKey[] => {
  const keys = text.split(',').map((entry) => {
    const [, id, key = ''] = /^(?:([A-Za-z0-9_-]{1,32}):)?(.+)$/.exec(entry.trim()) ?? []
    const bytes = encryptionKeyBytes(key)
    return bytes && { id: id ?? keyIdOf(bytes), key: bytes.toString('base64') }
  })
  if (keys.some((key) => key === undefined)) {
    context.addIssue({
      code: 'custom',
      message: `is not 32 random bytes: generate them with \`${generateEncryptionKey}\``,
    })
    return z.NEVER
  }
  const good = keys.filter((key) => key !== undefined)
  if (new Set(good.map((key) => key.id)).size < good.length)
    context.addIssue({ code: 'custom', message: 'has two keys with the same id' })
  return good
})

/** The id of a key without one: a hash, so that it does not reveal the key. */
const keyIdOf = (key: Buffer): string => createHash('sha256').update('kid:').update(key).digest('hex').slice(0, 12)

export const generateSigningKey =
  'openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -outform DER | openssl base64 -A'

/** A private key on the curve P-256 as a JSON Web Key. */
export interface SigningKey {
  readonly kty: 'EC'
  readonly crv: 'P-256'
  readonly x: string
  readonly y: string
  readonly d: string
  readonly alg: 'ES256'
  readonly use: 'sig'
  /** A hash of the public key. */
  readonly kid: string
}

/** Private keys in DER as base64: the first one signs, all of them verify. */
export const signingKeys = z.string().transform((text, context): SigningKey[] => {
  const keys = text.split(',').map((entry) => parseSigningKey(entry.trim()))
  const good = keys.filter((key) => key !== undefined)
  if (good.length === keys.length && new Set(good.map(({ kid }) => kid)).size === good.length) return good
  context.addIssue({
    code: 'custom',
    message: `is not a list of different private keys on the curve P-256: generate one with \`${generateSigningKey}\``,
  })
  return z.NEVER
})

function parseSigningKey(text: string): SigningKey | undefined {
  const der = Buffer.from(text, 'base64')
  const { crv, x, y, d } =
    (readPrivateKey(der, 'pkcs8') ?? readPrivateKey(der, 'sec1'))?.export({ format: 'jwk' }) ?? {}
  if (crv !== 'P-256' || !x || !y || !d) return undefined
  const kid = createHash('sha256')
    .update(JSON.stringify({ crv, kty: 'EC', x, y }))
    .digest('base64url')
  return { kty: 'EC', crv, x, y, d, alg: 'ES256', use: 'sig', kid }
}

/** Older versions of OpenSSL write such keys as SEC 1. */
function readPrivateKey(key: Buffer, type: 'pkcs8' | 'sec1'): KeyObject | undefined {
  try {
    return createPrivateKey({ key, format: 'der', type })
  } catch {
    return undefined
  }
}

/** The name of the service among all services that the OBS source knows. */
export const obsProviderId = z
  .string()
  .regex(/^[a-z0-9-]{1,32}$/, 'is not 1 to 32 lower-case letters, digits and hyphens')

export const smtpUrl = z.string().transform((text, context) => {
  const parsed = parseSmtpUrl(text)
  if (typeof parsed !== 'string') return parsed
  context.addIssue({ code: 'custom', message: parsed })
  return z.NEVER
})

export const mailSender = z.string().transform((text, context) => {
  const parsed = parseSender(text)
  if (parsed) return parsed
  context.addIssue({ code: 'custom', message: 'is not an address, or Name <address>' })
  return z.NEVER
})

export const rateLimits = z.string().transform((text, context) => {
  const limits: Record<RateLimitName, number> = { ...rateLimitDefaults }
  for (const entry of text.split(',').filter((part) => part.trim() !== '')) {
    const [name, count, ...rest] = entry.split('=').map((part) => part.trim())
    if (name && Object.hasOwn(limits, name) && rest.length === 0 && /^[1-9]\d{0,6}$/.test(count ?? '')) {
      limits[name as RateLimitName] = Number(count)
    } else {
      const names = Object.keys(rateLimitDefaults).join(', ')
      context.addIssue({ code: 'custom', message: `"${entry}" is not name=count with a name of: ${names}` })
    }
  }
  return limits
})
