import { describe, expect, test } from 'vitest'
import { startApiAndSite, startSite } from '../support/site.ts'

const { api, site } = await startApiAndSite()
const get = (path: string, init: RequestInit = {}, at: { readonly url: string } = site) => fetch(at.url + path, init)
const policyOf = (answer: Response) => answer.headers.get('content-security-policy')

describe('the API reference on the site', () => {
  test('is the page of the API with its files and its document', async () => {
    const page = await get('/docs')
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const html = await page.text()
    expect(html).toBe(await (await get('/docs', {}, api)).text())
    const files = [...html.matchAll(/(?:src|href)="(\/docs\/[^"]+)"/g)].map(([, path = '']) => path)
    expect(files).toHaveLength(3)
    for (const path of [...files, '/openapi.json']) {
      const [ours, theirs] = await Promise.all([get(path), get(path, {}, api)])
      expect(ours.status).toBe(200)
      for (const name of ['content-type', 'content-encoding', 'vary'])
        expect(ours.headers.get(name), name).toBe(theirs.headers.get(name))
      expect(await ours.text()).toBe(await theirs.text())
    }
    expect((await get(files[1] ?? '')).headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
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
