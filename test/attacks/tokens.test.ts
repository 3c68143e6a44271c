/**
 * Forged and swapped credentials on every operation that requires some, forged webhooks, and the ids of other accounts.
 */
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSign,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  randomUUID,
  sign,
} from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { type GivenUser, signUp } from '../support/api.ts'
import { connectApp, postForm } from '../support/apps.ts'
import { signedHeaders } from '../support/billing.ts'
import { pluginLogins } from '../support/plugin-logins.ts'
import { operator, operatorPassword } from '../support/relays.ts'
import { inParallel, nameOf, type Operation, operations, sendOperation } from './operations.ts'
import { startAttackedService } from './service.ts'

const service = await startAttackedService()
const { api, variables } = service
const secret = variables.SVC_JWT_SECRET ?? ''

let user: GivenUser

beforeAll(async () => {
  user = await signUp(api)
})

const userOperations = operations.filter(({ schemes }) => schemes.includes('accessToken'))
const operatorOperations = operations.filter(({ schemes }) => schemes.includes('operator'))
const relayOperations = operations.filter(({ schemes }) => schemes.includes('relayAuth'))

/** The refused operations are those that answer 401; every other answer is listed with its status. */
async function acceptedBy(
  targets: readonly Operation[],
  headers: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const answers = await Promise.all(
    targets.map(async (operation) => ({ operation, ...(await sendOperation(api.url, operation, { headers })) })),
  )
  return answers.filter(({ status }) => status !== 401).map(({ operation, status }) => `${nameOf(operation)} ${status}`)
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (part = ''): Record<string, unknown> => JSON.parse(Buffer.from(part, 'base64url').toString())

interface Changes {
  readonly header?: object
  readonly claims?: object
  readonly key?: string | Buffer
  readonly hash?: string
}

/** The user's token with these changes, signed like a genuine one. */
function forge({ header = {}, claims = {}, key = secret, hash = 'sha256' }: Changes): string {
  const [head, payload] = user.bearer.split('.')
  const signed = `${encode({ ...decode(head), ...header })}.${encode({ ...decode(payload), ...claims })}`
  return `${signed}.${createHmac(hash, key).update(signed).digest('base64url')}`
}

const nowSeconds = () => Math.floor(Date.now() / 1000)

describe('an access token', () => {
  test('that the suite signs without a change is accepted, so the forgeries fail for their change alone', async () => {
    const answer = await api.get('/auth/sessions', { bearer: forge({ claims: { jti: randomUUID() } }) })
    expect(answer.status).toBe(200)
  })

  test('is required by every operation of a user', async () => {
    expect(userOperations.length).toBeGreaterThan(30)
    const required = userOperations.filter(({ isPublic }) => !isPublic)
    expect(await acceptedBy(required, {})).toEqual([])
  })

  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const publicPem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const forgeries: Readonly<Record<string, () => string>> = {
    'with the algorithm none and no signature': () =>
      `${forge({ header: { alg: 'none' } })
        .split('.', 2)
        .join('.')}.`,
    'with the algorithm None and its signature': () => forge({ header: { alg: 'None' } }),
    'with the algorithm HS384': () => forge({ header: { alg: 'HS384' }, hash: 'sha384' }),
    'with the algorithm HS512': () => forge({ header: { alg: 'HS512' }, hash: 'sha512' }),
    'with the algorithm RS256 and the HMAC of a public key': () => forge({ header: { alg: 'RS256' }, key: publicPem }),
    'with the algorithm RS256 and an RSA signature': () => {
      const signed = forge({ header: { alg: 'RS256' } })
        .split('.', 2)
        .join('.')
      return `${signed}.${createSign('sha256').update(signed).sign(privateKey).toString('base64url')}`
    },
    'with a public key in its header': () =>
      forge({ header: { jwk: publicKey.export({ format: 'jwk' }) }, key: publicPem }),
    'with an address of keys in its header': () => forge({ header: { jku: 'http://127.0.0.1:9/keys' }, key: 'x' }),
    'with another secret': () => forge({ key: `${secret}x` }),
    'with an empty secret': () => forge({ key: '' }),
    'with another key id': () => forge({ header: { kid: 'other' } }),
    'with a path as its key id': () => forge({ header: { kid: '../../../../dev/null' }, key: '' }),
    'with a property of every object as its key id': () => forge({ header: { kid: '__proto__' }, key: '' }),
    'without a key id': () => forge({ header: { kid: undefined } }),
    'with a critical header that is not supported': () => forge({ header: { crit: ['exp2'], exp2: 1 } }),
    'of another type': () => forge({ header: { typ: 'JWT' } }),
    'that has expired': () => forge({ claims: { exp: nowSeconds() - 1 } }),
    'that is not valid yet': () => forge({ claims: { nbf: nowSeconds() + 3600 } }),
    'that is issued in the future': () => forge({ claims: { iat: nowSeconds() + 3600 } }),
    'without an expiry': () => forge({ claims: { exp: undefined } }),
    'whose expiry is a text': () => forge({ claims: { exp: '9999999999' } }),
    'of another issuer': () => forge({ claims: { iss: 'http://attacker.example' } }),
    'for another audience': () => forge({ claims: { aud: 'other' } }),
    'without an audience': () => forge({ claims: { aud: undefined } }),
    'whose subject and user differ': () => forge({ claims: { sub: randomUUID() } }),
    'of an account that does not exist': () => {
      const id = randomUUID()
      return forge({ claims: { sub: id, uid: id } })
    },
    'of an auth session that does not exist': () => forge({ claims: { sid: randomUUID() } }),
    'whose auth session is SQL': () => forge({ claims: { sid: "' or '1'='1" } }),
    'whose auth session is a list': () => forge({ claims: { sid: [decode(user.bearer.split('.')[1]).sid] } }),
    'whose payload was changed under its signature': () => {
      const [head, , signature] = user.bearer.split('.')
      return `${head}.${encode({ ...decode(user.bearer.split('.')[1]), exp: nowSeconds() + 99_999 })}.${signature}`
    },
    'with a fourth part': () => `${user.bearer}.${user.bearer.split('.')[2]}`,
    'that is a list of claims': () => {
      const signed = `${user.bearer.split('.')[0]}.${encode([])}`
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
    },
    'of 7 KB': () => forge({ claims: { padding: 'x'.repeat(5000) }, key: 'x' }),
  }

  test.each(Object.keys(forgeries))('%s is refused by every operation', async (name) => {
    const token = forgeries[name]?.() ?? ''
    expect(await acceptedBy(userOperations, bearer(token))).toEqual([])
  })

  test.each(['Basic', 'Token', 'bearer  ', 'Bearer\t', 'Bearer,'])('after the scheme %j is refused', async (scheme) => {
    expect(await acceptedBy(userOperations, { Authorization: `${scheme} ${user.bearer}` })).toEqual([])
  })

  test('in the query or in a cookie authenticates no one', async () => {
    for (const name of ['access_token', 'token', 'jwt'])
      expect((await fetch(`${api.url}/api/v1/auth/sessions?${name}=${user.bearer}`)).status).toBe(401)
    const headers = { Cookie: `svc_session=${user.bearer}` }
    expect((await api.get('/auth/sessions', { headers })).status).toBe(401)
  })

  test('of a disabled account is refused by every operation', async () => {
    const other = await signUp(api)
    await api.post(`/admin/users/${other.userId}/disable`, {}, { headers: operator })
    expect(await acceptedBy(userOperations, bearer(other.bearer))).toEqual([])
  })

  test('of an erased account is refused by every operation', async () => {
    const other = await signUp(api)
    const erased = await api.post(
      `/admin/users/${other.userId}/erase`,
      { email: other.email, reason: 'attacked' },
      { headers: operator },
    )
    expect([200, 202]).toContain(erased.status)
    expect(await acceptedBy(userOperations, bearer(other.bearer))).toEqual([])
  })

  test('is refused by every operation after its sign-out', async () => {
    const other = await signUp(api)
    expect((await api.post('/auth/logout', undefined, { bearer: other.bearer })).status).toBe(204)
    expect(await acceptedBy(userOperations, bearer(other.bearer))).toEqual([])
  })
})

describe('the access token of an app', () => {
  const key = createPrivateKey({
    key: Buffer.from(variables.SVC_OAUTH_SIGNING_KEYS ?? '', 'base64'),
    format: 'der',
    type: 'pkcs8',
  })
  const publicPem = createPublicKey(key).export({ type: 'spki', format: 'pem' })
  let token = ''
  beforeAll(async () => {
    token = (await connectApp(api, user.bearer, 'obs-relay-control')).access_token
  })

  /** The app's token with these changes, signed like a genuine one unless there is another key. */
  const forgeApp = (changes: { header?: object; claims?: object; key?: KeyObject }): string => {
    const [head, payload] = token.split('.')
    const signed = `${encode({ ...decode(head), ...changes.header })}.${encode({ ...decode(payload), ...changes.claims })}`
    const signature = sign('sha256', Buffer.from(signed), { key: changes.key ?? key, dsaEncoding: 'ieee-p1363' })
    return `${signed}.${signature.toString('base64url')}`
  }
  const forgeries: Readonly<Record<string, () => string>> = {
    'with the algorithm none and no signature': () =>
      `${forgeApp({ header: { alg: 'none' } })
        .split('.', 2)
        .join('.')}.`,
    'with the HMAC of the public key': () => {
      const signed = forgeApp({ header: { alg: 'HS256' } })
        .split('.', 2)
        .join('.')
      return `${signed}.${createHmac('sha256', publicPem).update(signed).digest('base64url')}`
    },
    'with the HMAC of the secret of users': () => {
      const signed = forgeApp({ header: { alg: 'HS256' } })
        .split('.', 2)
        .join('.')
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
    },
    'with another key': () => forgeApp({ key: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey }),
    'with a key in its header': () => {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      return forgeApp({ header: { jwk: publicKey.export({ format: 'jwk' }), kid: undefined }, key: privateKey })
    },
    'of another type': () => forgeApp({ header: { typ: 'JWT' } }),
    'that has expired': () => forgeApp({ claims: { exp: nowSeconds() - 1 } }),
    'without an expiry': () => forgeApp({ claims: { exp: undefined } }),
    'for the audience of users': () => forgeApp({ claims: { aud: 'svc-api', uid: user.userId } }),
    'of the issuer of users': () => forgeApp({ claims: { iss: api.url } }),
    'of a grant that does not exist': () => forgeApp({ claims: { gid: randomUUID() } }),
    'of another account': () => forgeApp({ claims: { sub: randomUUID() } }),
    'whose grant is SQL': () => forgeApp({ claims: { gid: "' or '1'='1" } }),
    'whose scopes are a list': () => forgeApp({ claims: { scope: ['ingests:read'] } }),
    'whose payload was changed under its signature': () => {
      const [head, payload, signature] = token.split('.')
      return `${head}.${encode({ ...decode(payload), scope: 'ingests:read relay:read' })}.${signature}`
    },
  }
  const appOperations = operations.filter(({ schemes }) => schemes.includes('appToken'))

  test('that the suite signs without a change is accepted by each operation of its scopes', async () => {
    expect(await acceptedBy(appOperations, bearer(forgeApp({ claims: { jti: randomUUID() } })))).toHaveLength(
      appOperations.length,
    )
  })

  test.each(Object.keys(forgeries))('%s is refused by every operation', async (name) => {
    const forged = forgeries[name]?.() ?? ''
    expect(await acceptedBy([...userOperations, ...appOperations], bearer(forged))).toEqual([])
  })

  test('is accepted by no endpoint of the provider in place of another token', async () => {
    for (const fields of [
      { grant_type: 'refresh_token', refresh_token: token, client_id: 'obs-relay-control' },
      {
        grant_type: 'authorization_code',
        code: token,
        redirect_uri: 'x',
        code_verifier: 'x'.repeat(43),
        client_id: 'obs-relay-control',
      },
    ])
      expect((await postForm(api, '/token', fields)).body).toMatchObject({ error: 'invalid_grant' })
  })
})

describe('credentials of another kind', () => {
  test('are refused by every operation of users, operators and relays', async () => {
    const session = await api.get<{ user: { stream_token: string } }>('/auth/session', { bearer: user.bearer })
    const signIn = await api.post<{ operator_token: string }>('/admin/sign-in', {}, { headers: operator })
    expect(signIn.status).toBe(201)
    const { startPlugin } = pluginLogins(api)
    const [relaySecret = ''] = (variables.SVC_RELAY_AUTH_SECRET ?? '').split(',')
    const tokens = {
      access: user.bearer,
      refresh: user.refreshToken,
      stream: session.body.user.stream_token,
      poll: (await startPlugin()).poll_token,
      operatorSession: signIn.body.operator_token,
      operatorPassword,
      relaySecret,
    }
    const accepted: string[] = []
    for (const [kind, token] of Object.entries(tokens)) {
      const basic = Buffer.from(`operator:${token}`).toString('base64')
      const attempts: [string, readonly Operation[], Record<string, string>][] = [
        ['access', userOperations, bearer(token)],
        ['operatorSession', operatorOperations, bearer(token)],
        ['operatorPassword', operatorOperations, { Authorization: `Basic ${basic}` }],
        ['relaySecret', relayOperations, { 'X-Relay-Auth': token }],
      ]
      for (const [expected, targets, headers] of attempts)
        if (expected !== kind) for (const each of await acceptedBy(targets, headers)) accepted.push(`${kind}: ${each}`)
    }
    expect(accepted).toEqual([])
  })

  test('no operation of operators is open without a password, and the token of its session ends with its sign-out', async () => {
    expect(operatorOperations.length).toBeGreaterThan(20)
    expect(await acceptedBy(operatorOperations, {})).toEqual([])
    const { body } = await api.post<{ operator_token: string }>('/admin/sign-in', {}, { headers: operator })
    expect((await api.get('/admin/jobs', { bearer: body.operator_token })).status).toBe(200)
    expect((await api.post('/admin/sign-out', {}, { headers: bearer(body.operator_token) })).status).toBe(204)
    expect(await acceptedBy(operatorOperations, bearer(body.operator_token))).toEqual([])
  })

  test('a token of a link in a mail is no access token, and an access token no token of a link', async () => {
    const answers = await Promise.all(
      ['/auth/password/reset/preview', '/auth/email/verify', '/auth/email/change/confirm', '/auth/refresh'].map(
        (path) => api.post(path, { token: user.bearer, refresh_token: user.bearer }),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 401])
  })
})

describe("the id of another account's thing", () => {
  test('reads, changes and ends nothing in any operation of a user', async () => {
    const victim = await service.paidUser()
    const started = await api.post<{ session: { session_id: string } }>(
      '/relay/start',
      {},
      { bearer: victim.bearer, headers: { 'Idempotency-Key': randomUUID() } },
    )
    const attempt = await pluginLogins(api).startPlugin()
    await pluginLogins(api).approvePlugin(attempt, victim)
    const subscriptionId = `sub_${randomUUID()}`
    await sendWebhook({ user_id: victim.userId, subscription_id: subscriptionId, kind: 'plan' })
    const signIns = await api.get<{ sessions: { id: string }[] }>('/auth/sessions', { bearer: victim.bearer })
    const ids = [
      victim.userId,
      started.body.session.session_id,
      attempt.login_attempt_id,
      subscriptionId,
      ...signIns.body.sessions.map(({ id }) => id),
    ]
    const targets = userOperations.filter(({ template }) => /\{(?!provider)/.test(template))
    expect(targets.length).toBeGreaterThan(6)
    const attempts = targets.flatMap((operation) => ids.map((id) => ({ operation, id })))
    const outcomes = await inParallel(attempts, async ({ operation, id }) => {
      const values = { id, subscription_id: id, outcome: 'cancel' }
      const { status } = await sendOperation(api.url, operation, { values, headers: bearer(user.bearer) })
      return { name: `${nameOf(operation)} ${id}`, status }
    })
    expect(outcomes.filter(({ status }) => ![400, 403, 404, 410].includes(status))).toEqual([])
    const stop = await api.post('/relay/stop', { session_id: started.body.session.session_id }, { bearer: user.bearer })
    expect(stop.status).toBe(404)
    const active = await api.get<{ session: { state: string } }>('/relay/active', { bearer: victim.bearer })
    expect(active.body.session.state).toBe('provisioning')
    expect((await api.get('/auth/sessions', { bearer: victim.bearer })).body).toMatchObject({
      sessions: signIns.body.sessions.map(({ id }) => ({ id })),
    })
  })
})

const webhookSecret = variables.SVC_BILLING_WEBHOOK_SECRET ?? ''
const webhookBody = (data: object) =>
  JSON.stringify({ type: 'subscription.activated', occurred_at: new Date().toISOString(), data })

const postWebhook = async (body: string, headers: Readonly<Record<string, string>>): Promise<number> =>
  (await fetch(`${api.url}/api/v1/billing/webhook`, { method: 'POST', headers, body })).status

async function sendWebhook(data: object): Promise<void> {
  const body = webhookBody(data)
  expect(await postWebhook(body, signedHeaders(webhookSecret, body, {}))).toBe(200)
}

describe('a billing webhook', () => {
  const body = webhookBody({ user_id: randomUUID(), subscription_id: 'sub_forged', kind: 'plan' })
  const other = `whsec_${randomBytes(32).toString('base64')}`
  const signed = () => signedHeaders(webhookSecret, body, {})
  const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000)
  const forgeries: Readonly<Record<string, () => Promise<number>>> = {
    'without a signature': () => postWebhook(body, {}),
    'with an empty signature': () => postWebhook(body, { ...signed(), 'webhook-signature': '' }),
    'with the signature of another secret': () => postWebhook(body, signedHeaders(other, body, {})),
    'whose body was changed by one byte': () => postWebhook(body.replace('"plan"', '"plaN"'), signed()),
    'with a space after its body': () => postWebhook(`${body} `, signed()),
    'with another id': () => postWebhook(body, { ...signed(), 'webhook-id': randomUUID() }),
    'with another time': () =>
      postWebhook(body, { ...signed(), 'webhook-timestamp': String(Math.floor(Date.now() / 1000) - 7) }),
    'of six minutes ago': () => postWebhook(body, signedHeaders(webhookSecret, body, { at: minutesAgo(6) })),
    'of the future': () => postWebhook(body, signedHeaders(webhookSecret, body, { at: minutesAgo(-6) })),
    'with a time that is no number': () => postWebhook(body, { ...signed(), 'webhook-timestamp': 'NaN' }),
    'with another version of the signature': () =>
      postWebhook(body, { ...signed(), 'webhook-signature': signed()['webhook-signature'].replace('v1,', 'v1a,') }),
    'with a part of the signature': () =>
      postWebhook(body, { ...signed(), 'webhook-signature': signed()['webhook-signature'].slice(0, 20) }),
    'with the signature of Lemon Squeezy': () =>
      postWebhook(body, { 'X-Signature': createHmac('sha256', webhookSecret).update(body).digest('hex') }),
    'with the signature of Stripe': () => {
      const at = nowSeconds()
      const v1 = createHmac('sha256', webhookSecret).update(`${at}.${body}`).digest('hex')
      return postWebhook(body, { 'Stripe-Signature': `t=${at},v1=${v1}` })
    },
  }

  test.each(Object.keys(forgeries))('%s is refused, and nothing is stored', async (name) => {
    expect(await forgeries[name]?.()).toBe(401)
    expect(
      await service.sql`select 1 from billing_events where position('sub_forged'::bytea in body) > 0`,
    ).toHaveLength(0)
  })

  test('that is sent again is accepted and stored once', async () => {
    const replayed = webhookBody({ user_id: user.userId, subscription_id: 'sub_replayed', kind: 'plan' })
    const headers = signedHeaders(webhookSecret, replayed, {})
    const statuses = await inParallel(Array(10).fill(replayed), (webhook) => postWebhook(webhook, headers))
    expect(new Set(statuses)).toEqual(new Set([200]))
    const rows = await service.sql`select 1 from billing_events where event_key like ${`%${headers['webhook-id']}%`}`
    expect(rows).toHaveLength(1)
  })
})
