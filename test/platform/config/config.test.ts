/** The configuration: what is required, and how problems are reported. */
import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readConfig, readDatabaseUrl, readWorkerConfig } from '../../../platform/config/config.ts'
import { ConfigError, type Environment } from '../../../platform/config/environment.ts'
import { readSiteConfig } from '../../../platform/config/site.ts'
import { readStackConfig } from '../../../platform/config/stack.ts'
import { generateSigningKey } from '../../../platform/embedded/secrets.ts'
import { temporaryFolder } from '../../support/folders.ts'

const complete = {
  DATABASE_URL: 'postgres://svc:pw@db:5432/svc',
  TEMPORAL_ADDRESS: 'temporal:7233',
  SVC_JWT_SECRET: 'ju7tU9oYk1mNQ4z0vBx2cD8eF6gH5iJ3',
  SVC_RELAY_AUTH_SECRET: 'aK9sLq2wE8rT5yU1iO7pZ3xC6vB4nM0d',
  OAUTH_ENCRYPTION_KEY: 'qJ3vTn8yW1kRz5mXc7Lb0sHd2gFa9uPe4iOtYw6NQxE=',
  SVC_BILLING_WEBHOOK_SECRET: 'whsec_p7Qm2vXk9LrT4wYb6ZcN8sJd1gHf3aUe5iOtVyRqWxM=',
}

function problemsOf(env: Environment, read: (env: Environment) => unknown = readConfig): readonly string[] {
  try {
    read(env)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

test('the service requires only six variables', () => {
  expect(readConfig(complete)).toMatchObject({
    port: 8080,
    apiUrl: 'http://localhost:8080',
    siteUrl: 'http://localhost:8081',
    jwt: { ttlSeconds: 720 },
    relay: { graceSeconds: 120, stopGraceSeconds: 30 },
    operatorPassword: undefined,
    trustedProxyHops: 0,
  })
})

test('all problems are reported together, each with the name of its variable', () => {
  const problems = problemsOf({
    ...complete,
    DATABASE_URL: 'mysql://db/svc',
    TEMPORAL_ADDRESS: undefined,
    PORT: 'http',
    SVC_JWT_SECRET: 'short',
    SVC_REGIONS: '{"region":',
  })
  expect(problems.map((line) => line.split(' ')[0]).toSorted()).toEqual([
    'DATABASE_URL',
    'PORT',
    'SVC_JWT_SECRET',
    'SVC_REGIONS',
    'TEMPORAL_ADDRESS',
  ])
  expect(problems).toContain('TEMPORAL_ADDRESS is not set')
  expect(problems.find((line) => line.startsWith('SVC_JWT_SECRET'))).toContain('openssl rand -base64 48')
})

test('no error message repeats a secret', () => {
  const problems = problemsOf({ ...complete, SVC_JWT_SECRET: 'hunter2', SVC_OPERATOR_PASSWORD: 'swordfish' })
  expect(problems).toHaveLength(2)
  expect(problems.join()).not.toMatch(/hunter2|swordfish/)
})

test.each(['please-changeme-please-changeme-please', 'this-is-an-example-secret-of-40-characters', 'a'.repeat(40)])(
  'a placeholder is rejected as a secret: %s',
  (secret) => {
    expect(problemsOf({ ...complete, SVC_JWT_SECRET: secret })).toEqual([
      expect.stringMatching(/^SVC_JWT_SECRET is a placeholder/),
    ])
  },
)

test('retention periods that are shorter than rules of the service need are rejected, all at once', () => {
  const tooShort = {
    SVC_RETENTION_SESSION_DAYS: '34',
    SVC_RETENTION_SIGN_IN_DAYS: '30',
    SVC_RETENTION_BILLING_DAYS: '364',
    SVC_RETENTION_AUDIT_DAYS: '0',
  }
  const named = problemsOf({ ...complete, ...tooShort }).map((line) => line.split(' ')[0])
  expect(named.toSorted()).toEqual(Object.keys(tooShort).toSorted())
  expect(readConfig({ ...complete, SVC_RETENTION_SESSION_DAYS: '35' }).retention).toMatchObject({
    sessionDays: 35,
    billingDays: 3650,
  })
})

test('variables that conflict with each other are rejected with the reason', () => {
  const problems = problemsOf({
    ...complete,
    SVC_RELAY_HEALTH_INTERVAL_SECONDS: '60',
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '90',
    TEMPORAL_TLS_CERT: 'a certificate',
  })
  expect(problems).toEqual([
    expect.stringContaining('SVC_RELAY_HEALTH_TIMEOUT_SECONDS is less than two times'),
    'TEMPORAL_TLS_CERT and TEMPORAL_TLS_KEY go together: set both or none',
  ])
})

test('relays with the engine `sls` need its server, and those with another engine ignore it', () => {
  const server = {
    SVC_RELAY_SLS_API_URL: 'http://127.0.0.1:8080/',
    SVC_RELAY_SLS_API_KEY: 'key-of-the-api',
    SVC_RELAY_SLS_PUBLISH_PORT: '4001',
  }
  const withSls = { ...complete, SVC_RELAY_ENGINE: 'sls', ...server }
  expect(problemsOf(withSls)).toEqual(['SVC_RELAY_SLS_PLAY_PORT is required with SVC_RELAY_ENGINE=sls'])
  expect(readConfig({ ...withSls, SVC_RELAY_SLS_PLAY_PORT: '4000' }).relay.sls).toEqual({
    apiUrl: 'http://127.0.0.1:8080',
    apiKey: 'key-of-the-api',
    publishPort: 4001,
    playPort: 4000,
  })
  expect(readConfig({ ...complete, ...server }).relay.sls).toBeUndefined()
})

test('an empty variable counts as unset', () => {
  expect(readConfig({ ...complete, PORT: '', SVC_OPERATOR_PASSWORD: '' })).toMatchObject({
    port: 8080,
    operatorPassword: undefined,
  })
})

test('a secret can be read from a file, without the last line break', async () => {
  const file = join(await temporaryFolder(), 'jwt')
  await writeFile(file, `${complete.SVC_JWT_SECRET}\n`)
  const { SVC_JWT_SECRET, ...rest } = complete
  expect(readConfig({ ...rest, SVC_JWT_SECRET_FILE: file }).jwt.secret).toBe(SVC_JWT_SECRET)
})

test.each([
  ['a byte order mark and a Windows line end', (secret: string) => `\uFEFF${secret}\r\n`],
  ['no line end', (secret: string) => secret],
])('the secret of a file with %s is the one of its text', async (_, write) => {
  const file = join(await temporaryFolder(), 'jwt')
  const { SVC_JWT_SECRET, ...rest } = complete
  await writeFile(file, write(SVC_JWT_SECRET))
  expect(readConfig({ ...rest, SVC_JWT_SECRET_FILE: file }).jwt.secret).toBe(SVC_JWT_SECRET)
})

test.each([
  ['two line ends', '\n\n', 'more than one line end'],
  ['a NUL', '\0', 'U\\+0000'],
  ['an escape character', '\u001b[0m', 'U\\+001B'],
])('a file with %s is refused by the name of its variable', async (_, end, named) => {
  const file = join(await temporaryFolder(), 'jwt')
  const { SVC_JWT_SECRET, ...rest } = complete
  await writeFile(file, `${SVC_JWT_SECRET}${end}`)
  expect(problemsOf({ ...rest, SVC_JWT_SECRET_FILE: file })).toEqual([
    expect.stringMatching(`^SVC_JWT_SECRET_FILE names .* contains ${named}`),
  ])
})

test('a variable that is set both directly and as a file is rejected', () => {
  expect(problemsOf({ ...complete, SVC_JWT_SECRET_FILE: '/run/secrets/jwt' })).toContain(
    'SVC_JWT_SECRET and SVC_JWT_SECRET_FILE are both set: keep one',
  )
})

test('a file that cannot be read is reported once, with the reason', () => {
  const { SVC_JWT_SECRET: _, ...rest } = complete
  const problems = problemsOf({ ...rest, SVC_JWT_SECRET_FILE: '/nowhere/jwt' })
  expect(problems).toEqual([
    expect.stringMatching(/^SVC_JWT_SECRET_FILE names \/nowhere\/jwt, which can't be read: ENOENT/),
  ])
})

test('the configuration is frozen at every level', () => {
  const config = readConfig(complete)
  expect(Object.isFrozen(config)).toBe(true)
  expect(Object.isFrozen(config.regions[0])).toBe(true)
  expect(() => Object.assign(config.relay, { graceSeconds: 1 })).toThrow(TypeError)
})

test('two relay secrets are accepted during a rotation, three are rejected', () => {
  const [first, second] = [complete.SVC_RELAY_AUTH_SECRET, complete.SVC_JWT_SECRET]
  expect(readConfig({ ...complete, SVC_RELAY_AUTH_SECRET: `${first}, ${second}` }).relayAuthSecrets).toEqual([
    first,
    second,
  ])
  expect(problemsOf({ ...complete, SVC_RELAY_AUTH_SECRET: [first, second, first].join(',') })).toEqual([
    expect.stringContaining('more than two'),
  ])
})

test('a rate limit can be overridden by name without changing the others', () => {
  const { rateLimits } = readConfig({ ...complete, SVC_RATE_LIMITS: 'login=50, relay_start=9' })
  expect(rateLimits).toMatchObject({ login: 50, relay_start: 9, signup: 5, relay_active: 60 })
})

test.each(['login', 'login=0', 'login=-1', 'login=1=2', 'nonsense=5', 'toString=5'])(
  'the rate limit "%s" is rejected',
  (text) => {
    expect(problemsOf({ ...complete, SVC_RATE_LIMITS: text })).toEqual([expect.stringMatching(/^SVC_RATE_LIMITS /)])
  },
)

test('two regions with the same name are rejected', () => {
  const region = { region: 'eu', display_name: 'Europe', provider: 'local' }
  expect(problemsOf({ ...complete, SVC_REGIONS: JSON.stringify([region, region]) })).toEqual([
    'SVC_REGIONS has two regions with the same name',
  ])
})

describe('apps', () => {
  const apps = { ...complete, SVC_OBS_PROVIDER_ID: 'relays-example-net' }
  const twice = generateSigningKey()
  const derOf = (namedCurve: string, type: 'pkcs8' | 'sec1') =>
    generateKeyPairSync('ec', { namedCurve }).privateKey.export({ format: 'der', type }).toString('base64')
  const signingKeysOf = (text: string) => readConfig({ ...apps, SVC_OAUTH_SIGNING_KEYS: text }).apps?.signingKeys

  test('are off without an id, and need keys with one', () => {
    expect(readConfig(complete).apps).toBeNull()
    expect(problemsOf(apps)).toEqual(['SVC_OAUTH_SIGNING_KEYS is required with SVC_OBS_PROVIDER_ID'])
  })

  test('have keys of one curve in both forms that OpenSSL writes, each with a name that does not reveal it', () => {
    const keys = signingKeysOf(`${derOf('P-256', 'pkcs8')}, ${derOf('P-256', 'sec1')}`)
    expect(keys).toMatchObject([{ kty: 'EC', alg: 'ES256', use: 'sig' }, { crv: 'P-256' }])
    for (const { kid, d } of keys ?? []) expect([kid.length, kid === d]).toEqual([43, false])
  })

  test.each([
    ['no key', 'short'],
    ['another curve', derOf('P-384', 'pkcs8')],
    ['a good one and nothing', `${derOf('P-256', 'pkcs8')},`],
    ['the same one twice', `${twice},${twice}`],
  ])('refuse %s', (_, text) => {
    expect(() => signingKeysOf(text)).toThrow(/SVC_OAUTH_SIGNING_KEYS is not a list of different private keys/)
  })

  test.each(['Relays', 'a'.repeat(33), 'a_b', 'a.b'])('refuse the id %s', (SVC_OBS_PROVIDER_ID) => {
    const problems = problemsOf({ ...apps, SVC_OAUTH_SIGNING_KEYS: generateSigningKey(), SVC_OBS_PROVIDER_ID })
    expect(problems).toEqual(['SVC_OBS_PROVIDER_ID is not 1 to 32 lower-case letters, digits and hyphens'])
  })
})

describe('names of relays', () => {
  const names = {
    ...complete,
    SVC_FLEET_NAME: 'tests',
    SVC_RELAY_DOMAIN: 'Relays.Example.net',
    SVC_DNS_SERVER: 'ns1.example.net',
    SVC_DNS_KEY: `svc:${Buffer.alloc(32).toString('base64')}`,
  }

  test('need a name server, its key and the name of the fleet, which the worker checks', () => {
    expect(readConfig(complete).relayNames).toBeNull()
    expect(readWorkerConfig(names).relayNames).toMatchObject({
      domain: 'relays.example.net',
      server: { host: 'ns1.example.net', port: 53 },
      key: { name: 'svc' },
    })
    for (const name of ['SVC_DNS_SERVER', 'SVC_DNS_KEY', 'SVC_FLEET_NAME'] as const)
      expect(() => readWorkerConfig({ ...names, [name]: undefined })).toThrow(
        `${name} is required with SVC_RELAY_DOMAIN`,
      )
  })

  test('may not share the registrable domain of the site', () => {
    const withSite = (SVC_SITE_URL: string) => () => readWorkerConfig({ ...names, SVC_SITE_URL })
    expect(withSite('https://example.net')).toThrow('SVC_RELAY_DOMAIN shares the domain example.net with SVC_SITE_URL')
    expect(withSite('https://app.example.net')).toThrow('shares the domain')
    expect(withSite('https://example.com')).not.toThrow()
    // Each name below a public suffix is a domain of its own.
    const below = { ...names, SVC_RELAY_DOMAIN: 'relays.github.io', SVC_SITE_URL: 'https://site.github.io' }
    expect(() => readWorkerConfig(below)).not.toThrow()
  })

  test.each([
    ['SVC_RELAY_DOMAIN', 'relays', 'is not a domain'],
    ['SVC_DNS_SERVER', 'ns1.example.net:port', 'is not a name or an IPv4 address'],
    ['SVC_DNS_KEY', 'a-secret', 'is not name:secret'],
    ['SVC_DNS_KEY', 'svc:c2hvcnQ=', 'is not name:secret'],
  ])('%s is not %s', (name, text, problem) => {
    expect(() => readWorkerConfig({ ...names, [name]: text })).toThrow(problem)
  })
})

test('a region at Hetzner requires a token, which only the worker needs', () => {
  const hetzner = { location: 'fsn1', server_type: 'cx22', image: 'debian-13' }
  const regions = JSON.stringify([{ region: 'de', display_name: 'Germany', provider: 'hetzner', hetzner }])
  const env = { ...complete, SVC_REGIONS: regions, SVC_API_URL: 'https://api.example.com' }
  expect(readConfig(env).fleet.hetzner).toEqual({ token: undefined, apiUrl: 'https://api.hetzner.cloud/v1' })
  expect(() => readWorkerConfig(env)).toThrow('SVC_HETZNER_TOKEN is required for regions with "provider":"hetzner"')
  expect(() => readWorkerConfig({ ...env, SVC_HETZNER_TOKEN: 'two words' })).toThrow('not allowed in a header')
  expect(readWorkerConfig({ ...env, SVC_HETZNER_TOKEN: 'a-token' }).fleet.hetzner.token).toBe('a-token')
})

test('a worker with regions in a cloud requires the URL of the API, which their relays report to', () => {
  const hetzner = { location: 'fsn1', server_type: 'cax11', image: 'debian-13' }
  const regions = JSON.stringify([{ region: 'de', display_name: 'Germany', provider: 'hetzner', hetzner }])
  const env = { ...complete, SVC_API_URL: undefined, SVC_REGIONS: regions, SVC_HETZNER_TOKEN: 'a-token' }
  expect(problemsOf(env, readWorkerConfig)).toEqual([
    'SVC_API_URL is required for regions in a cloud, since their relays report to it',
  ])
  expect(problemsOf({ ...env, SVC_REGIONS: undefined }, readWorkerConfig)).toEqual([])
})

test.each(['Staging', '-staging', 'staging-', 'a'.repeat(33), 'a.b'])('the fleet name %s is rejected', (name) => {
  expect(problemsOf({ ...complete, SVC_FLEET_NAME: name })).toEqual([
    'SVC_FLEET_NAME is not 1 to 32 lower-case letters, digits and inner hyphens',
  ])
})

test('migrations require only DATABASE_URL', () => {
  expect(readDatabaseUrl({ DATABASE_URL: complete.DATABASE_URL })).toBe(complete.DATABASE_URL)
  expect(problemsOf({}, readDatabaseUrl)).toEqual(['DATABASE_URL is not set'])
})

test('the local stack requires no variable', () => {
  expect(readStackConfig({ HOME: '/home/someone' })).toMatchObject({
    cacheDir: '/home/someone/.cache/relay-control-plane',
    databaseUrl: undefined,
    temporalAddress: undefined,
    port: undefined,
    secrets: { SVC_JWT_SECRET: undefined },
  })
})

test('the local stack checks the variables that are set', () => {
  expect(problemsOf({ SVC_JWT_SECRET: 'short', SVC_EMBEDDED_PG_PORT: '70000' }, readStackConfig)).toHaveLength(2)
})

test('a relative XDG_CACHE_HOME is ignored, as its specification requires', () => {
  expect(readStackConfig({ HOME: '/home/someone', XDG_CACHE_HOME: 'cache' }).cacheDir).toBe(
    '/home/someone/.cache/relay-control-plane',
  )
})

const keyBytes = Buffer.from(complete.OAUTH_ENCRYPTION_KEY, 'base64')
const otherKey = Buffer.from(keyBytes).reverse()
const keysOf = (text: string) => readConfig({ ...complete, OAUTH_ENCRYPTION_KEY: text }).oauthEncryptionKeys
const keyProblems = (text: string | undefined) => problemsOf({ ...complete, OAUTH_ENCRYPTION_KEY: text })

test('the encryption key is the same in base64 and in hex, and its generated id does not reveal it', () => {
  const [key] = keysOf(complete.OAUTH_ENCRYPTION_KEY)
  expect(key).toEqual({ id: expect.stringMatching(/^[0-9a-f]{12}$/), key: complete.OAUTH_ENCRYPTION_KEY })
  expect(keysOf(keyBytes.toString('hex'))).toEqual([key])
  expect(keysOf(keyBytes.toString('base64url'))).toEqual([key])
  expect(keyBytes.toString('hex')).not.toContain(key?.id)
})

test('during a rotation all encryption keys are read, in their order', () => {
  const keys = keysOf(`2026:${otherKey.toString('hex')}, 2025:${complete.OAUTH_ENCRYPTION_KEY}`)
  expect(keys).toEqual([
    { id: '2026', key: otherKey.toString('base64') },
    { id: '2025', key: complete.OAUTH_ENCRYPTION_KEY },
  ])
})

test.each([
  ['too short', keyBytes.subarray(0, 31).toString('base64')],
  ['too long', Buffer.concat([keyBytes, keyBytes]).toString('hex')],
  ['all zeros', Buffer.alloc(32).toString('base64')],
  ['all zeros in hex', '0'.repeat(64)],
  ['a password', 'correct horse battery staple, and some more words'],
  ['a good one and a bad one', `2026:${complete.OAUTH_ENCRYPTION_KEY},2025:short`],
  ['a good one and nothing', `${complete.OAUTH_ENCRYPTION_KEY},`],
])('an encryption key that is %s is rejected with the command that generates one, and not repeated', (_, text) => {
  const problems = keyProblems(text)
  expect(problems).toEqual([
    'OAUTH_ENCRYPTION_KEY is not 32 random bytes: generate them with `openssl rand -base64 32`',
  ])
})

test('two encryption keys with the same id are rejected', () => {
  const twice = `a:${complete.OAUTH_ENCRYPTION_KEY},a:${otherKey.toString('base64')}`
  expect(keyProblems(twice)).toEqual(['OAUTH_ENCRYPTION_KEY has two keys with the same id'])
})

test('the encryption key is required', () => {
  expect(keyProblems(undefined)).toEqual(['OAUTH_ENCRYPTION_KEY is not set'])
})

test('an OAuth provider is configured by its client id and secret, and its issuer URL can be overridden', () => {
  expect(readConfig(complete).oauth).toEqual({ twitch: undefined, google: undefined, discord: undefined })
  const twitch = { SVC_TWITCH_CLIENT_ID: 'an id', SVC_TWITCH_CLIENT_SECRET: 'swordfish' }
  expect(readConfig({ ...complete, ...twitch }).oauth).toMatchObject({
    twitch: { clientId: 'an id', clientSecret: 'swordfish', issuerUrl: 'https://id.twitch.tv/oauth2' },
    google: undefined,
  })
  const moved = { ...twitch, SVC_TWITCH_ISSUER_URL: 'http://127.0.0.1:9000/oauth2/' }
  expect(readConfig({ ...complete, ...moved }).oauth.twitch?.issuerUrl).toBe('http://127.0.0.1:9000/oauth2')
})

test.each(['TWITCH', 'GOOGLE', 'DISCORD'])(
  '%s with a client id and no secret, or the other way round, is rejected',
  (name) => {
    const together = [`SVC_${name}_CLIENT_ID and SVC_${name}_CLIENT_SECRET go together: set both or none`]
    expect(problemsOf({ ...complete, [`SVC_${name}_CLIENT_ID`]: 'an id' })).toEqual(together)
    expect(problemsOf({ ...complete, [`SVC_${name}_CLIENT_SECRET`]: 'swordfish' })).toEqual(together)
  },
)

test('links of emails are logged unless SVC_LOG_LINKS is false', () => {
  expect(readConfig(complete).logLinks).toBe(true)
  expect(readConfig({ ...complete, SVC_LOG_LINKS: 'false' }).logLinks).toBe(false)
  expect(problemsOf({ ...complete, SVC_LOG_LINKS: 'no' })).toEqual([expect.stringMatching(/^SVC_LOG_LINKS /)])
})

describe('test mode of a billing provider', () => {
  const stripe = (key: string) => ({
    ...complete,
    SVC_BILLING_PROVIDER: 'stripe',
    SVC_STRIPE_API_KEY: key,
    SVC_STRIPE_PLAN_PRICE_ID: 'price_1',
    SVC_STRIPE_ADDON_PRICE_ID: 'price_2',
  })
  const lemonSqueezy = {
    ...complete,
    SVC_BILLING_PROVIDER: 'lemonsqueezy',
    SVC_LEMONSQUEEZY_API_KEY: 'key',
    SVC_LEMONSQUEEZY_STORE_ID: '1',
    SVC_LEMONSQUEEZY_PLAN_VARIANT_ID: '2',
    SVC_LEMONSQUEEZY_ADDON_VARIANT_ID: '3',
  }
  const production = { NODE_ENV: 'production' }
  const testMode = { SVC_BILLING_TEST_MODE: 'true' }

  test.each([
    ['with a test key of Stripe, in production too', { ...stripe('sk_test_1'), ...production }, true],
    ['with a restricted test key of Stripe', stripe('rk_test_1'), true],
    ['not with a live key of Stripe', stripe('sk_live_1'), false],
    ['not with a restricted live key of Stripe', stripe('rk_live_1'), false],
    ['not with a key of Stripe without a mode prefix, in production', { ...stripe('key'), ...production }, false],
    ['at Lemon Squeezy outside of production', lemonSqueezy, true],
    ['not at Lemon Squeezy in production', { ...lemonSqueezy, ...production }, false],
    [
      'at Lemon Squeezy in production when SVC_BILLING_TEST_MODE is true',
      { ...lemonSqueezy, ...production, ...testMode },
      true,
    ],
    [
      'not at Lemon Squeezy when SVC_BILLING_TEST_MODE is false',
      { ...lemonSqueezy, SVC_BILLING_TEST_MODE: 'false' },
      false,
    ],
  ])('is accepted %s', (_case, env, isAccepted) => {
    expect(readConfig(env).billing.acceptsTestMode).toBe(isAccepted)
  })

  test('must not contradict the mode of the Stripe key', () => {
    for (const [key, testMode] of [
      ['sk_live_1', 'true'],
      ['sk_test_1', 'false'],
    ] as const)
      expect(problemsOf({ ...stripe(key), SVC_BILLING_TEST_MODE: testMode })).toEqual([
        expect.stringMatching(/^SVC_BILLING_TEST_MODE=\w+ contradicts SVC_STRIPE_API_KEY/),
      ])
  })
})

test('a billing provider requires its own variables, and the sandbox a Standard Webhooks secret', () => {
  expect(problemsOf({ ...complete, SVC_BILLING_PROVIDER: 'stripe' })).toEqual([
    'SVC_STRIPE_API_KEY is not set: SVC_BILLING_PROVIDER=stripe requires it',
    'SVC_STRIPE_PLAN_PRICE_ID is not set: SVC_BILLING_PROVIDER=stripe requires it',
    'SVC_STRIPE_ADDON_PRICE_ID is not set: SVC_BILLING_PROVIDER=stripe requires it',
  ])
  expect(problemsOf({ ...complete, SVC_BILLING_WEBHOOK_SECRET: 'no standard webhook secret' })).toEqual([
    expect.stringMatching(/^SVC_BILLING_WEBHOOK_SECRET is not whsec_ /),
  ])
  expect(problemsOf({ ...complete, SVC_BILLING_PORTAL_URL: 'http://pay.example/portal' })).toEqual([
    'SVC_BILLING_PORTAL_URL is not an https:// URL',
  ])
  expect(problemsOf({ ...complete, NODE_ENV: 'production' })).toEqual([
    expect.stringMatching(/^SVC_BILLING_PROVIDER is not set: /),
  ])
  expect(problemsOf({ ...complete, NODE_ENV: 'production', SVC_BILLING_PROVIDER: 'sandbox' })).toEqual([])
})

test('the site requires no variable and holds no secret', () => {
  expect(readSiteConfig({})).toMatchObject({
    port: 8081,
    siteUrl: 'http://localhost:8081',
    apiUrl: 'http://localhost:8080',
    trustedProxyHops: 0,
  })
  const config = readSiteConfig({ ...complete, SVC_SITE_PORT: '9000', SVC_API_URL: 'http://api:8080/' })
  expect(config).toMatchObject({ port: 9000, siteUrl: 'http://localhost:9000', apiUrl: 'http://api:8080' })
  const text = JSON.stringify(config)
  for (const secret of [
    complete.SVC_JWT_SECRET,
    complete.SVC_RELAY_AUTH_SECRET,
    complete.OAUTH_ENCRYPTION_KEY,
    complete.SVC_BILLING_WEBHOOK_SECRET,
  ])
    expect(text).not.toContain(secret)
})

test('all problems of the site are reported together', () => {
  expect(problemsOf({ SVC_SITE_PORT: 'http', SVC_API_URL: 'nowhere' }, readSiteConfig)).toEqual([
    expect.stringMatching(/^SVC_SITE_PORT /),
    expect.stringMatching(/^SVC_API_URL /),
  ])
})

test('the address for the metrics of a worker is an IP address with a port', () => {
  const read = (address: string) => {
    const variables = { ...complete, SVC_WORKER_METRICS_ADDRESS: address }
    return [
      problemsOf(variables).length,
      problemsOf(variables).length > 0 || readConfig(variables).workerMetricsAddress,
    ]
  }
  expect(['0.0.0.0:9464', '[::]:9464'].map(read)).toEqual([
    [0, '0.0.0.0:9464'],
    [0, '[::]:9464'],
  ])
  for (const address of ['localhost:9464', '0.0.0.0', '1.2.3:9464', '0.0.0.0:0', '0.0.0.0:65536', ':9464'])
    expect(read(address), address).toEqual([1, true])
})
