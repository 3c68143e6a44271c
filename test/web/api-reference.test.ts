/** The API reference on the site: its head, its sign-in, and what it does not lead to. */
import { describe, expect, test } from 'vitest'
import { looksLikeAccessToken } from '../support/access-tokens.ts'
import { startApiAndSite, startSite } from '../support/site.ts'

const { api, site } = await startApiAndSite()
const get = (path: string, init: RequestInit = {}, at: { readonly url: string } = site) => fetch(at.url + path, init)
const policyOf = (answer: Response) => answer.headers.get('content-security-policy')

/** Without the head, which is the site's own. */
const contentOf = (html: string) => html.replace(/(<body>).*(?=<div id="reference">)/s, '$1')
/** Where the head leads to. */
const targetsOf = (html: string) =>
  [...html.replace(/<div id="reference">.*/s, '').matchAll(/<(?:a|form)[^>]* (?:href|action)="([^"]+)"/g)].map(
    ([, target]) => target,
  )

async function signedIn() {
  const user = await api.given.user()
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  return { user, browser }
}

describe('the API reference on the site', () => {
  test('is the page of the API with its files and its document', async () => {
    const page = await get('/docs')
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const html = await page.text()
    expect(contentOf(html).replaceAll('\n', '')).toBe(
      contentOf(await (await get('/docs', {}, api)).text()).replaceAll('\n', ''),
    )
    const files = [...new Set([...html.matchAll(/(?:src|href)="(\/docs\/[^"]+)"/g)].map(([, path = '']) => path))]
    expect(files).toHaveLength(4)
    for (const path of [...files, '/openapi.json']) {
      const [ours, theirs] = await Promise.all([get(path), get(path, {}, api)])
      expect(ours.status).toBe(200)
      for (const name of ['content-type', 'content-encoding', 'vary'])
        expect(ours.headers.get(name), name).toBe(theirs.headers.get(name))
      expect(await ours.text()).toBe(await theirs.text())
    }
    expect((await get(files[2] ?? '')).headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  })

  test('has the name of the service, and leads a visitor without a sign-in to one and back', async () => {
    const html = await (await get('/docs')).text()
    expect(html).toContain('<title>Backhaul API reference</title>')
    expect(targetsOf(html)).toEqual(
      expect.arrayContaining(['/', '/login?next=%2Fdocs', '/sign-up', '#tag/sign-in/POST/api/v1/auth/login']),
    )
    expect(html).toContain('data-access="signed-out"')
  })

  test('has the navigation of a signed-in visitor, is not stored, and contains no token', async () => {
    const { browser } = await signedIn()
    const { html, headers } = await browser
      .request('GET', '/docs')
      .then(({ text, headers }) => ({ html: text, headers }))
    expect(targetsOf(html)).toEqual(['/', '/relays', '/history', '/usage', '/account', '/sign-out'])
    expect(html).toContain('data-access="signed-in"')
    expect(headers.get('cache-control')).toBe('no-store')
    const tokens = [browser.cookies.get('svc_session'), browser.cookies.get('svc_refresh')]
    for (const token of tokens) expect(token !== undefined && html.includes(token)).toBe(false)
  })

  test('sends what a signed-in visitor tries out with the visitor’s cookie, and for other sites nothing', async () => {
    const { user, browser } = await signedIn()
    const typed = { headers: { Authorization: 'Bearer entered' } }
    expect((await browser.requestApi('GET', '/auth/session', undefined, typed)).text).toContain(user.email)
    const foreign = { from: 'cross-site' as const, headers: { Origin: 'https://evil.example' } }
    const page = await browser.request('GET', '/docs', foreign)
    expect([page.headers.get('access-control-allow-origin'), page.headers.get('cross-origin-resource-policy')]).toEqual(
      [null, 'same-origin'],
    )
    expect((await browser.requestApi('POST', '/relay/start', {}, foreign)).status).toBe(403)
  })

  test('knows a visitor who comes from another site, and one whose access token has expired', async () => {
    const { browser } = await signedIn()
    const arrived = await browser.open('/docs', { from: 'cross-site' })
    expect([arrived.visited.length, arrived.html.includes('data-access="signed-in"')]).toEqual([2, true])
    browser.cookies.set('svc_session', looksLikeAccessToken(-1))
    const renewed = await browser.open('/docs')
    expect([renewed.visited.length, renewed.html.includes('data-access="signed-in"')]).toEqual([3, true])
  })

  test('is the only page whose policy allows inline styles', async () => {
    const policy = policyOf(await get('/docs'))
    expect(policy).toContain("style-src 'self' 'unsafe-inline'")
    expect(policy).toContain("script-src 'self'; ")
    for (const path of ['/openapi.json', '/docs/0123456789ab/start.js', '/login', '/docs/', '/nowhere'])
      expect(policyOf(await get(path)), path).not.toContain('unsafe')
  })

  test.each([
    '/docs/%2e%2e/metrics',
    '/docs/..%2fmetrics',
    '/docs/0123456789ab/%2e%2e%2f%2e%2e%2fmetrics',
    '/docs/0123456789ab/..',
    '/metrics',
    '/health',
  ])('does not lead to other pages of the API by %s', async (path) => {
    const answer = await get(path)
    expect(answer.status).toBe(404)
    expect(await answer.text()).not.toContain('svc_')
  })

  test('is read only', async () => {
    const answer = await get('/docs', { method: 'POST', headers: { Origin: site.url } })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, expect.stringContaining('GET')])
    const head = await get('/docs', { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
  })

  test('is unavailable without the API', async () => {
    const alone = await startSite({ url: 'http://127.0.0.1:9' })
    const answer = await get('/docs', {}, alone)
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '2'])
    expect(policyOf(answer)).not.toContain('unsafe')
  })
})
