/** What other sites, links and other people's texts can do in the browser of a visitor or of an operator. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { pages } from '../../web/pages.ts'
import type { GivenUser } from '../support/api.ts'
import { signedHeaders } from '../support/billing.ts'
import { startDiscord } from '../support/oauth-discord.ts'
import { pluginLogins } from '../support/plugin-logins.ts'
import { operator, operatorPassword } from '../support/relays.ts'
import { Browser, type Reply } from '../support/site-browser.ts'
import { readPage } from '../support/site-page.ts'
import { findActiveMarkup } from './markup.ts'
import { inParallel, operations, pathOf } from './operations.ts'
import { startAttackedService } from './service.ts'

/** Ends an attribute, a text, a comment, a script and a title, and marks what it becomes. */
const markup = `"'><img src=x onerror=alert(1)>--></title></script></textarea><svg/onload=alert(2)><a href=javascript:alert(3)>`
const region = 'marked'
const discord = await startDiscord()
const service = await startAttackedService({
  with: ['site'],
  variables: {
    ...discord.variables,
    SVC_BRAND_NAME: `B${markup}`.slice(0, 40),
    SVC_REGIONS: JSON.stringify([
      { region, display_name: markup.slice(0, 64), provider: 'local', default: true, capacity: 5 },
    ]),
  },
})
const { api, siteUrl, sql, variables } = service
const evil = 'https://evil.example'

let user: GivenUser
let visitor: Browser
let operatorBrowser: Browser

beforeAll(async () => {
  user = await service.paidUser()
  visitor = await signedIn(user)
  operatorBrowser = new Browser(siteUrl)
  await operatorBrowser.post('/operator/sign-in', { password: operatorPassword })
})

async function signedIn({ email, password }: GivenUser, headers: Readonly<Record<string, string>> = {}) {
  const browser = new Browser(siteUrl)
  await browser.post('/login', { email, password }, { headers })
  if (!browser.cookies.get('svc_session')) throw new Error('the sign-in failed')
  return browser
}

const withoutParameters = (path: string, value = 'x') => path.replaceAll(/:\w+/g, value)
const reads = pages.filter(({ method }) => method === 'GET').map(({ path }) => withoutParameters(path))
const writes = pages.filter(({ method }) => method === 'POST').map(({ path }) => withoutParameters(path, randomUUID()))

describe('a page of another site', () => {
  const origins: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    'cross-site Fetch Metadata': { 'Sec-Fetch-Site': 'cross-site', Origin: evil },
    'Fetch Metadata of a sibling host': { 'Sec-Fetch-Site': 'same-site', Origin: 'http://sibling.localhost' },
    'the origin of the site and cross-site Fetch Metadata': { 'Sec-Fetch-Site': 'cross-site', Origin: siteUrl },
    'a foreign origin': { 'Sec-Fetch-Site': '', Origin: evil },
    'an opaque origin': { 'Sec-Fetch-Site': '', Origin: 'null' },
    'an origin that begins like the site': { 'Sec-Fetch-Site': '', Origin: `${siteUrl}.evil.example` },
    'the origin with another scheme': { 'Sec-Fetch-Site': '', Origin: siteUrl.replace('http', 'https') },
    'the origin with another port': { 'Sec-Fetch-Site': '', Origin: siteUrl.replace(/\d+$/, '1') },
  }

  test.each(Object.keys(origins))('submits no form and sends no request of a page with %s', async (name) => {
    const headers = { ...origins[name], 'Content-Type': 'application/x-www-form-urlencoded' }
    const forwarded = operations.filter(({ method }) => method !== 'GET')
    const targets = [
      ...writes.flatMap((path) => [visitor, operatorBrowser].map((browser) => ({ browser, method: 'POST', path }))),
      ...forwarded.map((operation) => ({ browser: visitor, method: operation.method, path: pathOf(operation) })),
    ]
    expect(targets.length).toBeGreaterThan(100)
    const outcomes = await inParallel(targets, async ({ browser, method, path }) => {
      // Node sends the body of a DELETE without a length, which the server reads as another request.
      const body = method === 'DELETE' ? {} : { body: 'reason=x&next=/' }
      const { status } = await browser.request(method, path, { headers, ...body })
      return { method, path, status }
    })
    expect(outcomes.filter(({ status }) => status !== 403)).toEqual([])
  })

  test('has not signed the visitor and the operator out, and has changed no account', async () => {
    expect((await visitor.open('/account')).name).toBe('account')
    expect((await operatorBrowser.open('/operator')).path).toBe('/operator')
    const [row] = await sql`select disabled_at, plan_tier from users where id = ${user.userId}`
    expect(row).toMatchObject({ disabledAt: null, planTier: 'paid' })
  })

  test('cannot frame a page, and no page runs a script in its text', async () => {
    const answers = await inParallel(reads, (path) => visitor.request('GET', path, { from: 'none' }))
    const policies = answers.map(({ headers }) => headers.get('content-security-policy') ?? '')
    expect(policies.filter((policy) => !policy.includes("frame-ancestors 'none'"))).toEqual([])
    expect(policies.filter((policy) => /script-src[^;]*('unsafe-|\*|data:)/.test(policy))).toEqual([])
    expect(policies.filter((policy) => !policy.includes("base-uri 'none'"))).toEqual([])
    expect(answers.filter(({ headers }) => headers.get('x-content-type-options') !== 'nosniff')).toEqual([])
    expect(answers.filter(({ headers }) => headers.get('access-control-allow-origin') !== null)).toEqual([])
  })

  test('gets no permission for a request to the API or the site', async () => {
    for (const url of [api.url, siteUrl]) {
      const preflight = await fetch(`${url}/api/v1/auth/session`, {
        method: 'OPTIONS',
        headers: {
          Origin: evil,
          'Access-Control-Request-Method': 'GET',
          'Access-Control-Request-Headers': 'authorization',
        },
      })
      expect([...preflight.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  })
})

describe('a cookie', () => {
  test('of the site is HttpOnly, Secure, for this host alone and not sent from other sites', async () => {
    const form = new URLSearchParams({ email: user.email, password: user.password }).toString()
    const type = { 'Content-Type': 'application/x-www-form-urlencoded' }
    const browser = new Browser(siteUrl)
    const replies = [
      await browser.request('POST', '/login', { body: form, headers: type }),
      await browser.request('POST', '/operator/sign-in', {
        body: `password=${encodeURIComponent(operatorPassword)}`,
        headers: type,
      }),
      await browser.request('POST', '/oauth/discord/start', { body: 'intent=sign_in', headers: type }),
    ]
    const cookies = replies.flatMap(({ headers }) => headers.getSetCookie())
    expect(cookies.map((line) => line.split('=')[0])).toEqual(
      expect.arrayContaining(['svc_session', 'svc_refresh', 'svc_operator', 'svc_oauth']),
    )
    for (const line of cookies) {
      expect(line).toMatch(/; HttpOnly; Secure; SameSite=/)
      expect(line).not.toMatch(/domain=/i)
      expect(line).toMatch(line.startsWith('svc_oauth') ? /SameSite=Lax/ : /SameSite=Strict/)
    }
  })

  test('that an attacker has set before is not the one of the sign-in', async () => {
    const fixed = randomUUID().replaceAll('-', '').padEnd(43, 'x')
    const browser = new Browser(siteUrl)
    browser.cookies.set('svc_operator', fixed, '/operator')
    browser.cookies.set('svc_session', `${fixed}.${fixed}.${fixed}`)
    await browser.post('/operator/sign-in', { password: operatorPassword })
    await browser.post('/login', { email: user.email, password: user.password })
    expect(browser.cookies.get('svc_operator')).not.toBe(fixed)
    expect(browser.cookies.get('svc_session')).not.toContain(fixed)
    expect((await api.get('/admin/jobs', { bearer: fixed })).status).toBe(401)
  })
})

describe('a link', () => {
  const targets = [
    evil,
    '//evil.example',
    '///evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '/%09/evil.example',
    'https:evil.example',
    'https:/evil.example',
    '/.//evil.example',
    '/..//evil.example',
    '//evil.example%2f..',
    'javascript:alert(1)',
    ' //evil.example',
    '@evil.example',
    '.evil.example',
    '/\u2028/evil.example',
    'data:text/html,x',
  ]
  const names = ['next', 'to', 'return_to', 'redirect', 'redirect_uri', 'redirect_to', 'continue', 'url', 'returnTo']

  /** Where a reply leads, by a redirect or a refreshing page, when that is another origin. */
  const foreignTargetsOf = (reply: Reply, path: string): string[] =>
    [reply.headers.get('location'), readPage(reply, path, []).continuesTo, ...readPage(reply, path, []).links]
      .filter((target) => typeof target === 'string')
      .filter((target) => target.includes('evil') || /^\s*(javascript|data):/i.test(target))
      .filter((target) => !URL.canParse(target, siteUrl) || new URL(target, siteUrl).origin !== siteUrl)

  test.each(targets)('to a page with the target %j leads to no other site', async (target) => {
    const query = new URLSearchParams(names.map((name) => [name, target])).toString()
    // From another site the cookies of a sign-in are not sent, so a visitor without one is enough.
    const stranger = new Browser(siteUrl)
    const attempts = reads.flatMap((path) => [
      {
        browser: path.startsWith('/operator') ? operatorBrowser : visitor,
        path: `${path}?${query}`,
        from: 'none' as const,
      },
      { browser: stranger, path: `${path}?${query}`, from: 'none' as const },
      { browser: stranger, path: `${path}?${query}`, from: 'cross-site' as const },
    ])
    const found = await inParallel(attempts, async ({ browser, path, from }) => {
      const headers = { 'Sec-Fetch-Mode': 'navigate' }
      return foreignTargetsOf(await browser.request('GET', path, { from, headers }), path).map((to) => `${path}: ${to}`)
    })
    expect(found.flat()).toEqual([])
  })

  test('that is submitted with a sign-in leads to no other site', async () => {
    const found = await inParallel(targets, async (target) => {
      const fields = new URLSearchParams(names.map((name) => [name, target]))
      const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
      fields.set('password', operatorPassword)
      const reply = await new Browser(siteUrl).request('POST', '/operator/sign-in', {
        body: fields.toString(),
        headers,
      })
      expect(reply.status).toBe(303)
      return foreignTargetsOf(reply, '/operator/sign-in')
    })
    expect(found.flat()).toEqual([])
    const fields = { email: user.email, password: user.password, next: '//evil.example' }
    const page = await new Browser(siteUrl).post('/login', fields)
    expect(page.continuesTo).toBeUndefined()
  })

  test('to a provider returns to the site alone', async () => {
    const start = await api.post<{ authorization_url: string }>('/auth/oauth/discord/start', {
      intent: 'sign_in',
      redirect_uri: evil,
      next: evil,
    })
    expect(start.status).toBe(201)
    const { searchParams } = new URL(start.body.authorization_url)
    expect(searchParams.get('redirect_uri')).toBe(`${siteUrl}/oauth/discord/callback`)
    expect(start.body.authorization_url).not.toContain('evil')
  })
})

describe('a text with markup', () => {
  const agent = { 'User-Agent': `Mozilla/5.0 ${markup}` }

  beforeAll(async () => {
    await signedIn(user, agent)
    const bearer = { bearer: user.bearer, headers: agent }
    const plugins = pluginLogins(api)
    const attempt = (
      await api.post<{ login_attempt_id: string; poll_token: string }>(
        '/auth/plugin/login/start',
        { client_name: markup.slice(0, 60) },
        { headers: agent },
      )
    ).body
    await plugins.approvePlugin(attempt, user)
    await plugins.pollPlugin(attempt)
    await api.post('/relay/start', {}, { ...bearer, headers: { ...agent, 'Idempotency-Key': randomUUID() } })
    await api.post('/notifications/endpoint', { type: 'webhook', url: `https://1.1.1.1/${markup}` }, bearer)
    for (const type of ['subscription.activated', markup]) await sendEvent(type)
    const admin = { headers: { ...operator, ...agent } }
    await api.post(`/admin/users/${user.userId}/relay-access`, { enabled: true, reason: markup }, admin)
    await api.post(`/admin/regions/${region}/drain`, { reason: markup }, admin)
  })

  async function sendEvent(type: string): Promise<void> {
    const data = { user_id: user.userId, subscription_id: `sub ${markup}`, kind: 'plan', invoice_id: markup }
    const body = JSON.stringify({ type, occurred_at: new Date().toISOString(), data })
    const secret = variables.SVC_BILLING_WEBHOOK_SECRET ?? ''
    const headers = signedHeaders(secret, body, { id: `evt ${markup} ${type.length}` })
    const response = await fetch(`${api.url}/api/v1/billing/webhook`, { method: 'POST', headers, body })
    expect(response.status).toBe(200)
  }

  /** The pages with the ids that exist, each with parameters that hold the markup. */
  async function pathsToShow(): Promise<readonly string[]> {
    const sessions = await sql`select id from relay_sessions`
    const events = await sql`select id from billing_events`
    const attempts = await api.post<{ login_attempt_id: string }>('/auth/plugin/login/start', {
      client_name: `Open ${markup.slice(0, 50)}`,
    })
    const ids = [user.userId, ...sessions.map(({ id }) => id), ...events.map(({ id }) => id)]
    const query = ['error', 'problem', 'notice', 'message', 'email', 'code', 'state', 'connection', 'region', 'action']
      .concat(['next', 'token', 'status', 'user_id', 'name', 'group', 'cursor', 'client', 'plan', 'reason'])
      .map((name) => `${name}=${encodeURIComponent(markup)}`)
      .join('&')
    const templates = pages.filter(({ method }) => method === 'GET').map(({ path }) => path)
    const known = templates.flatMap((path) =>
      path.includes(':') ? ids.map((id) => withoutParameters(path, id)) : [path],
    )
    return [
      ...known,
      ...templates.map((path) => `${withoutParameters(path, encodeURIComponent(markup))}?${query}`),
      `/missing/${encodeURIComponent(markup)}?${query}`,
      `/login?attempt=${attempts.body.login_attempt_id}`,
      `/operator/users?email=${encodeURIComponent(user.email)}`,
      `/operator/audit?user_id=${user.userId}`,
    ]
  }

  /** JSON and text are not rendered, provided that the browser may not guess another type. */
  function activeMarkupOf(headers: Headers, text: string): readonly string[] {
    const isRendered = /^(text\/html|image\/svg)/.test(headers.get('content-type') ?? 'text/html')
    const isGuessed = !isRendered && headers.get('x-content-type-options') !== 'nosniff'
    return isRendered || isGuessed ? findActiveMarkup(text, siteUrl) : []
  }

  test('is found by the check when it is not escaped', () => {
    expect(findActiveMarkup(`<!doctype html><p title="${markup}">`, siteUrl).length).toBeGreaterThanOrEqual(3)
    expect(findActiveMarkup('<a href="&#9;javascript:x">', siteUrl)).toHaveLength(1)
    expect(findActiveMarkup('<script>x</script><script src="/a.js"></script>', siteUrl)).toEqual(['<script>'])
  })

  test('is shown escaped on every page and in the operator console, and runs nowhere', async () => {
    const paths = await pathsToShow()
    const attempts = paths.flatMap((path) =>
      (path.startsWith('/operator') ? [operatorBrowser] : [visitor, new Browser(siteUrl)]).map((browser) => ({
        browser,
        path,
      })),
    )
    const outcomes = await inParallel(attempts, async ({ browser, path }) => {
      const { path: shown, html, status, headers } = await browser.open(path)
      return { path: shown, html, status, active: activeMarkupOf(headers, html) }
    })
    expect(outcomes.flatMap(({ path, active }) => active.map((element) => `${path}: ${element}`))).toEqual([])
    expect(outcomes.filter(({ status }) => status >= 500).map(({ path }) => path)).toEqual([])
    const showing = outcomes.filter(({ html }) => html.includes('onerror=alert(1)'))
    const names = new Set(showing.map(({ path }) => path.replace(/[?].*/, '').replaceAll(/[0-9a-f-]{36}/g, ':id')))
    expect([...names].sort()).toEqual(expect.arrayContaining(['/login', '/operator/audit', '/operator/regions']))
  })

  test('in a form that is refused is shown escaped', async () => {
    const paths = pages
      .filter(({ method }) => method === 'POST')
      .map(({ path }) => withoutParameters(path, randomUUID()))
    const names = [
      'email',
      'password',
      'next',
      'reason',
      'url',
      'type',
      'name',
      'token',
      'connection_id',
      'region',
      'plan',
    ]
    const fields = Object.fromEntries(names.map((name) => [name, markup]))
    const harmless = paths.filter((path) => !/sign-out|delete/.test(path))
    const outcomes = await inParallel(harmless, async (path) => {
      const browser = path.startsWith('/operator') ? operatorBrowser : visitor
      const reply = await browser.request('POST', path, {
        body: new URLSearchParams(fields).toString(),
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      })
      return { path, status: reply.status, active: activeMarkupOf(reply.headers, reply.text) }
    })
    expect(outcomes.filter(({ active, status }) => active.length > 0 || status >= 500)).toEqual([])
  })

  test('in a request to the API is answered as JSON that no browser renders', async () => {
    const paths = ['/api/v1/missing', '/api/v1/auth/sessions', '/api/v1/capacity/status', '/docs', '/openapi.json']
    for (const url of [api.url, siteUrl])
      for (const path of paths) {
        const response = await fetch(`${url}${path}/${encodeURIComponent(markup)}?q=${encodeURIComponent(markup)}`)
        expect(response.headers.get('x-content-type-options')).toBe('nosniff')
        expect(activeMarkupOf(response.headers, await response.text())).toEqual([])
      }
  })
})
