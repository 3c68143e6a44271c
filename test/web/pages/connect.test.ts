/** Connecting an app in a browser without scripts, and the page of connected apps. */
import { createHash, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { sourceApp } from '../../../domain/identity/apps.ts'
import type { GivenUser } from '../../support/api.ts'
import {
  appVariables,
  authorizationQuery,
  type BegunRequest,
  codeFields,
  connectApp,
  exchange,
} from '../../support/apps.ts'
import { IrlSourceClient } from '../../support/irl-source-client.ts'
import { startApiAndSite } from '../../support/site.ts'
import type { Browser } from '../../support/site-browser.ts'

const { api, site } = await startApiAndSite({ api: await appVariables() })

async function signedIn(user: GivenUser) {
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  return browser
}

/** The app opens the address at the api in the browser, which is led to the site. */
async function arrive(browser: Browser, clientId = sourceApp) {
  const { query, ...kept } = authorizationQuery(clientId)
  const reply = await browser.request('GET', `${api.url}/oauth/auth?${query}`, { from: 'none' })
  const { pathname } = new URL(reply.headers.get('location') ?? '')
  const request: BegunRequest = { id: pathname.split('/').at(-1) ?? '', clientId, cookie: '', ...kept }
  return { request, page: await browser.open(pathname, { from: 'cross-site' }) }
}

/** The browser goes on from the last page of the site: to the api, which leads to the app. */
async function goOn(browser: Browser, page: { readonly continuesTo?: string | undefined }) {
  const reply = await browser.request('GET', page.continuesTo ?? '', { from: 'cross-site' })
  const location = reply.headers.get('location') ?? ''
  return { status: reply.status, text: reply.text, url: URL.canParse(location) ? new URL(location) : null }
}

const decisionOf = async (id: string) =>
  (
    await api.sql<{ decision: string | null }[]>`
      select decision from app_requests where id_hash = ${createHash('sha256').update(id).digest()}`
  )[0]?.decision

test('a visitor signs in, sees app, account and scopes in words, approves, and the app gets its tokens', async () => {
  const [user, browser] = [await api.given.user(), site.browser()]
  const { request, page: login } = await arrive(browser, 'obs-relay-control')
  expect([login.name, login.data('next')]).toEqual(['login', ['approval']])
  const question = await browser.submit(login, '/login', { email: user.email, password: user.password })
  expect(question).toMatchObject({ path: `/connect/${request.id}`, name: 'connect' })
  for (const text of ['OBS script', user.email, 'Start and stop your relays']) expect(question.text).toContain(text)
  expect(question.data('account')).toEqual([user.userId])
  expect(question.data('scope')).toEqual(['ingests:read', 'relay:read', 'relay:control'])
  expect((await api.get('/auth/apps', { bearer: user.bearer })).body).toEqual({ apps: [] })
  const leaving = await browser.submit(question, `/connect/${request.id}/approve`)
  expect(leaving.continuesTo?.startsWith(`${api.url}/oauth/auth/${request.id}?ticket=`)).toBe(true)
  const { url } = await goOn(browser, leaving)
  expect(url?.href.startsWith(request.redirectUri)).toBe(true)
  expect(url?.searchParams.get('state')).toBe(request.state)
  const tokens = await exchange(api, codeFields(request, url?.searchParams.get('code') ?? ''))
  expect(tokens.status).toBe(200)
})

test('denying leads back to the app with an error', async () => {
  const browser = await signedIn(await api.given.user())
  const { request, page } = await arrive(browser)
  const { url } = await goOn(browser, await browser.submit(page, `/connect/${request.id}/deny`))
  expect([url?.searchParams.get('error'), url?.searchParams.get('state')]).toEqual(['access_denied', request.state])
})

test('signing up on the way returns to the question and approves nothing', async () => {
  const browser = site.browser()
  const { request, page: login } = await arrive(browser)
  const signUp = await browser.open(login.links.find((href) => href.startsWith('/sign-up')) ?? '')
  const credentials = { email: `${randomUUID()}@example.com`, password: 'a few words in a row' }
  const question = await browser.submit(signUp, '/sign-up', credentials)
  expect(question).toMatchObject({ path: `/connect/${request.id}`, name: 'connect' })
  expect(await decisionOf(request.id)).toBeNull()
})

test('an approval in another browser than the request’s leads nowhere', async () => {
  const [victim, attacker] = [await signedIn(await api.given.user()), site.browser()]
  const { request } = await arrive(attacker)
  const question = await victim.open(`/connect/${request.id}`, { from: 'cross-site' })
  const left = await goOn(victim, await victim.submit(question, `/connect/${request.id}/approve`))
  expect([left.status, left.url]).toEqual([400, null])
  expect(left.text).toContain('was started in another browser')
  const back = await attacker.request('GET', `${api.url}/oauth/auth/${request.id}`, { from: 'none' })
  expect(back.headers.get('location')).toBe(`${site.url}/connect/${request.id}`)
})

test('forms of other sites, and of a page that shows another account, decide nothing', async () => {
  const [user, other] = [await api.given.user(), await api.given.user()]
  const browser = await signedIn(user)
  const { request } = await arrive(browser)
  const path = `/connect/${request.id}/approve`
  for (const from of ['cross-site', 'same-site'] as const)
    expect((await browser.post(path, { account: user.userId }, { from })).status).toBe(403)
  for (const account of [other.userId, ''])
    expect(await browser.post(path, { account })).toMatchObject({ name: 'connect', path: `/connect/${request.id}` })
  expect((await browser.open(path)).status).toBeGreaterThanOrEqual(404)
  const shown = await api.get<{ status: string }>(`/auth/apps/requests/${request.id}`, { bearer: user.bearer })
  expect(shown.body.status).toBe('pending')
})

test('the page cannot be framed, and keeps its form action', async () => {
  const browser = await signedIn(await api.given.user())
  const { request } = await arrive(browser)
  const reply = await browser.request('GET', `/connect/${request.id}`)
  const policy = reply.headers.get('content-security-policy') ?? ''
  for (const directive of ["frame-ancestors 'none'", "form-action 'self'"]) expect(policy).toContain(directive)
})

test('an unknown or expired request is a page that says so', async () => {
  const browser = await signedIn(await api.given.user())
  const { request } = await arrive(browser)
  await api.sql`update app_requests set expires_at = now()`
  for (const id of [request.id, 'a'.repeat(21), 'x'])
    expect(await browser.open(`/connect/${id}`)).toMatchObject({ status: 404, name: 'connect-unknown' })
})

test('connected apps are listed with what they may do, and disconnected after a confirmation', async () => {
  const user = await api.given.user()
  const browser = await signedIn(user)
  expect((await browser.open('/account/apps')).text).toContain('No apps are connected')
  const { access_token } = await connectApp(api, user.bearer)
  await connectApp(api, user.bearer, 'obs-relay-control', 'relay:read')
  const list = await browser.open('/account/apps')
  expect(list.data('app')).toEqual([sourceApp, 'obs-relay-control'])
  expect(list.data('scope')).toEqual(['ingests:read', 'relay:read'])
  const question = await browser.open(list.links.find((href) => href.includes(sourceApp)) ?? '')
  expect((await api.get('/ingests', { bearer: access_token })).status).toBe(200)
  const left = await browser.submit(question, `/account/apps/${sourceApp}/disconnect`)
  expect(left).toMatchObject({ name: 'account-apps', notice: 'disconnected' })
  expect(left.data('app')).toEqual(['obs-relay-control'])
  expect((await api.get('/ingests', { bearer: access_token })).status).toBe(401)
  const activity = (await browser.open('/account/activity')).text
  for (const text of ['App connected', 'App disconnected', 'OBS source (IRL)']) expect(activity).toContain(text)
})

test('the site serves the document of the source, which names the api', async () => {
  const client = new IrlSourceClient(`${site.url}/`)
  expect(await client.discover()).toMatchObject({
    clientId: sourceApp,
    scope: 'ingests:read',
    ingests: `${api.url}/api/v1/ingests`,
    authorization: `${api.url}/oauth/auth`,
  })
})
