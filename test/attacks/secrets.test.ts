/**
 * Every secret that a run of the service creates is in its replies to the owner alone: not in logs, histories, metrics
 * or rows.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { beforeAll, expect, inject, test } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import { apps } from '../../domain/identity/apps.ts'
import { instanceSecret } from '../../providers/relay/instance-secrets.ts'
import { type GivenUser, signUp, type TokenSet } from '../support/api.ts'
import { begin, codeFields, comeBack, decide, exchange, refresh } from '../support/apps.ts'
import { startDiscord } from '../support/oauth-discord.ts'
import { pluginLogins } from '../support/plugin-logins.ts'
import { eventually, operator, operatorPassword } from '../support/relays.ts'
import { Browser } from '../support/site-browser.ts'
import { startSmtpServer } from '../support/smtp-server.ts'
import { inParallel, operations, sendOperation } from './operations.ts'
import { findSecrets } from './secret-scan.ts'
import { startAttackedService } from './service.ts'
import { readArguments, readFiles, readTables, readWorkflows } from './stored-places.ts'

const [smtp, discord] = await Promise.all([startSmtpServer(), startDiscord()])
const service = await startAttackedService({
  with: ['worker', 'site'],
  variables: {
    ...discord.variables,
    SVC_SMTP_URL: `${smtp.url}?tls=off`,
    SVC_MAIL_FROM: 'Relays <relays@example.com>',
  },
})
const { api, siteUrl, sql, dataDir, variables } = service

const secrets = new Map<string, string>()
/** Bodies of errors, and addresses that replies lead to. */
const replies: string[] = []

const keep = (name: string, value: string | null | undefined): string => {
  secrets.set(name, value ?? '')
  return value ?? ''
}

const keepTokens = (name: string, tokens: TokenSet): TokenSet => {
  keep(`access token of ${name}`, tokens.cp_access_jwt)
  keep(`signature of the access token of ${name}`, tokens.cp_access_jwt?.split('.')[2])
  keep(`refresh token of ${name}`, tokens.refresh_token)
  return tokens
}

/** The token of the first mail to this address. */
const tokenOfMail = async (recipient: string): Promise<string> => {
  const find = () => smtp.received.find(({ recipients }) => recipients.includes(recipient))
  const mail = await eventually(find, (found) => found !== undefined)
  return tokenIn(mail?.text)
}

const tokenIn = (text: string | undefined): string => /token=([\w~.-]+)/.exec(text ?? '')?.[1] ?? ''

let user: GivenUser
let sessionId: string

// Uses everything that creates or takes a secret.
beforeAll(async () => {
  for (const name of ['SVC_JWT_SECRET', 'SVC_RELAY_AUTH_SECRET', 'OAUTH_ENCRYPTION_KEY', 'SVC_BILLING_WEBHOOK_SECRET'])
    keep(name, variables[name])
  keep('operator password', operatorPassword)
  keep('secret of the client at Discord', variables.SVC_DISCORD_CLIENT_SECRET)
  user = await signUp(api)
  const signedUp = { cp_access_jwt: user.bearer, refresh_token: user.refreshToken } as TokenSet
  keepTokens('the sign-up', signedUp)
  keep('verification token', await tokenOfMail(user.email))
  await api.post(`/admin/users/${user.userId}/grant`, { plan_tier: 'paid', addons: 3 }, { headers: operator })
  await signInEverywhere()
  await changeAccount()
  await connectApps()
  await runRelay()
  await misplaceSecrets()
})

async function signInEverywhere(): Promise<void> {
  const { email, password } = user
  keepTokens('the login', (await api.post<TokenSet>('/auth/login', { email, password })).body)
  const refreshed = await api.post<TokenSet>('/auth/refresh', { refresh_token: user.refreshToken })
  user = { ...user, bearer: keepTokens('the refresh', refreshed.body).cp_access_jwt }
  const browser = new Browser(siteUrl)
  await browser.post('/login', { email, password })
  keep('session cookie', browser.cookies.get('svc_session'))
  keep('refresh cookie', browser.cookies.get('svc_refresh'))
  await browser.post('/operator/sign-in', { password: operatorPassword })
  keep('operator cookie', browser.cookies.get('svc_operator'))
  const wrong = keep('wrong operator password', randomBytes(16).toString('hex'))
  await browser.post('/operator/sign-in', { password: wrong })
  const { startPlugin, approvePlugin, pollPlugin } = pluginLogins(api)
  const attempt = await startPlugin()
  keep('poll token', attempt.poll_token)
  await approvePlugin(attempt, user)
  keepTokens('the plugin', (await pollPlugin(attempt)).body as unknown as TokenSet)
  const start = await api.post<{ authorization_url: string; binding: string }>(
    '/auth/oauth/discord/start',
    { intent: 'link' },
    { bearer: user.bearer },
  )
  const callback = await discord.visit(start.body.authorization_url)
  keep('state', callback.state)
  keep('authorization code', callback.code)
  keep('binding', start.body.binding)
  const linked = await api.post('/auth/oauth/discord/callback', { ...callback, binding: start.body.binding })
  expect([linked.status, linked.body]).toMatchObject([200, { status: 'linked' }])
  for (const { accessToken } of discord.issuedTokens) keep('access token of Discord', accessToken)
}

async function changeAccount(): Promise<void> {
  const { email, bearer } = user
  const received = smtp.received.length
  await api.post('/auth/password/forgot', { email })
  await eventually(
    () => smtp.received.length,
    (count) => count > received,
  )
  keep('reset token', tokenIn(smtp.received.at(-1)?.text))
  const newPassword = keep('new password', randomBytes(12).toString('base64url'))
  keep('wrong password', randomBytes(12).toString('base64url'))
  await api.post(
    '/auth/password/change',
    { current_password: secrets.get('wrong password'), new_password: newPassword },
    { bearer },
  )
  const changed = await api.post(
    '/auth/password/change',
    { current_password: user.password, new_password: newPassword },
    { bearer },
  )
  expect(changed.status).toBe(204)
  const address = `${randomUUID()}@example.com`
  await api.post('/auth/email/change', { email: address, password: newPassword }, { bearer })
  keep('token of the change of address', await tokenOfMail(address))
  // An address of Discord is known without a name server.
  const path = randomBytes(30).toString('hex')
  keep('URL of a Discord webhook', path)
  const url = `https://discord.com/api/webhooks/123/${path}`
  expect((await api.post('/notifications/endpoint', { type: 'discord', url }, { bearer })).status).toBe(201)
  const endpoint = await api.post<{ signing_secret: string | null }>(
    '/notifications/endpoint',
    { type: 'webhook', url: 'https://1.1.1.1/' },
    { bearer },
  )
  keep('signing secret of an endpoint', endpoint.body.signing_secret?.replace('whsec_', ''))
}

/** Up to a resolved address, and with a request that stays undecided. */
async function connectApps(): Promise<void> {
  keep('signing key of apps', variables.SVC_OAUTH_SIGNING_KEYS)
  for (const clientId of apps.map(({ clientId }) => clientId)) {
    const request = await begin(api, clientId)
    keep(`request of ${clientId}`, request.id)
    keep(`state of ${clientId}`, request.state)
    keep(`verifier of ${clientId}`, request.verifier)
    keep(`signature of the cookie of ${clientId}`, request.cookie.split('=').at(-1))
    const continueUrl = await decide(api, request, user.bearer)
    keep(`ticket of ${clientId}`, new URL(continueUrl).searchParams.get('ticket'))
    const returned = await comeBack(continueUrl, request.cookie)
    const code = keep(`code of ${clientId}`, returned.searchParams.get('code'))
    const first = await exchange(api, codeFields(request, code))
    const second = await refresh(api, first.body.refresh_token, clientId)
    for (const [name, { body }] of Object.entries({ first, second })) {
      keep(`${name} signature of ${clientId}`, body.access_token.split('.')[2])
      keep(`${name} refresh token of ${clientId}`, body.refresh_token)
    }
    expect((await api.get('/ingests', { bearer: second.body.access_token })).status).toBe(200)
  }
  keep('undecided request', (await begin(api)).id)
}

async function runRelay(): Promise<void> {
  const { bearer } = user
  const session = await api.get<{ user: { stream_token: string } }>('/auth/session', { bearer })
  keep('stream token', session.body.user.stream_token)
  const started = await api.post('/relay/start', {}, { bearer, headers: { 'Idempotency-Key': randomUUID() } })
  expect(started.status).toBe(201)
  type Active = { readonly session: (SessionView & { pair_token: string; relay_ws_token: string }) | null }
  const { session: relay } = await eventually(
    async () => (await api.get<Active>('/relay/active', { bearer })).body,
    (active) => active.session?.state === 'active',
  )
  sessionId = relay?.session_id ?? ''
  keep('pair token', relay?.pair_token)
  keep('socket token', relay?.relay_ws_token)
  const made = await api.post<{ key: string }>('/relay/play-keys', { name: 'Studio PC' }, { bearer })
  const { play_keys: keys } = (
    await api.get<{ play_keys: { kind: string; name: string; key: string }[] }>('/relay/play-keys', { bearer })
  ).body
  for (const { kind, name, key } of keys) keep(`play key ${name} of the kind ${kind}`, key)
  expect(keys.map(({ kind }) => kind)).toEqual(['own', 'connection', 'app', 'app'])
  const shown = await eventually(
    () => fetch(`${relay?.connect?.stats_url}/${made.body.key}`),
    ({ ok }) => ok,
  )
  expect(shown.status).toBe(200)
  keep('secret of the instance', instanceSecret(variables.SVC_RELAY_AUTH_SECRET ?? '', relay?.instance_id ?? ''))
}

/** Sends each secret where it does not belong, as a broken client would. */
async function misplaceSecrets(): Promise<void> {
  await inParallel([...secrets.values()], async (secret) => {
    const encoded = encodeURIComponent(secret)
    const responses = [
      await fetch(`${api.url}/api/v1/auth/sessions/${encoded}?token=${encoded}`),
      await fetch(`${api.url}/api/v1/${encoded}`),
      await fetch(`${siteUrl}/reset-password/${encoded}`, { redirect: 'manual' }),
      await fetch(`${api.url}/api/v1/auth/login`, { method: 'POST', body: `{"password":"${secret}` }),
      await fetch(`${api.url}/api/v1/auth/sessions`, { headers: { Authorization: `Digest ${secret}` } }),
    ]
    for (const response of responses) replies.push(`${response.headers.get('location')} ${await response.text()}`)
  })
  const users = operations.filter(({ schemes, bodySchema }) => bodySchema && !schemes.includes('operator'))
  const body = Object.fromEntries(secrets)
  const answers = await inParallel(users, (operation) =>
    sendOperation(api.url, operation, {
      headers: { Authorization: `Bearer ${user.bearer}` },
      // A valid name of a connection is stored as it is. This one is refused, and must not be in the reply or a log.
      body: { ...body, connection_id: `/${body['pair token']}` },
    }),
  )
  for (const { status, text } of answers) if (status >= 400) replies.push(text)
}

test('a planted secret is found in each of its forms', () => {
  const planted = new Map([['planted', 'pl/anted+secret?"é']])
  const forms = [
    'pl/anted+secret?"é',
    encodeURIComponent('pl/anted+secret?"é'),
    Buffer.from('pl/anted+secret?"é').toString('base64'),
    Buffer.from('pl/anted+secret?"é').toString('base64url'),
    Buffer.from('pl/anted+secret?"é').toString('hex'),
  ]
  for (const form of forms)
    expect(findSecrets(planted, new Map([['a log', `before ${form} after`]]))).toEqual(['planted in a log'])
  expect(findSecrets(planted, new Map([['a log', 'nothing']]))).toEqual([])
})

test('the search finds the id of a session in rows, histories, files, arguments and logs', async () => {
  const ids = new Map([['id', sessionId]])
  const workflows = await readWorkflows(inject('temporalAddress'), variables.SVC_TEMPORAL_TASK_QUEUE ?? '')
  expect(findSecrets(ids, workflows)).toContain(`id in workflow relay-session/${sessionId}`)
  expect(findSecrets(ids, await readTables(sql))).toContain('id in table relay_sessions')
  expect(findSecrets(ids, await readFiles(dataDir))).not.toEqual([])
  expect(findSecrets(ids, await readArguments(dataDir))).not.toEqual([])
  expect(findSecrets(ids, new Map([['the logs', service.logged()]]))).toEqual(['id in the logs'])
})

test('no secret of the run is in a log of any process', () => {
  expect(service.logged()).toContain('request completed')
  expect(findSecrets(secrets, new Map([['the logs', service.logged()]]))).toEqual([])
})

test('no secret of the run is in a history, memo or search attribute of a workflow', async () => {
  const workflows = await readWorkflows(inject('temporalAddress'), variables.SVC_TEMPORAL_TASK_QUEUE ?? '')
  expect(workflows.size).toBeGreaterThan(0)
  expect(findSecrets(secrets, workflows)).toEqual([])
})

test('no secret of the run is in a row of the database, unless it is hashed or encrypted', async () => {
  const tables = await readTables(sql)
  expect(tables.size).toBeGreaterThan(30)
  expect(findSecrets(secrets, tables)).toEqual([])
})

test('no secret of the run is in the metrics, in the body of an error or in an address', async () => {
  const metrics = await (await fetch(`${api.url}/metrics`)).text()
  expect(replies.length).toBeGreaterThan(100)
  expect(
    findSecrets(
      secrets,
      new Map([
        ['the metrics', metrics],
        ['replies', replies.join('\n')],
      ]),
    ),
  ).toEqual([])
})

test('no secret of the run is in a file of the data folder or in the arguments of a process', async () => {
  expect(findSecrets(secrets, await readFiles(dataDir))).toEqual([])
  expect(findSecrets(secrets, await readArguments(dataDir))).toEqual([])
})
