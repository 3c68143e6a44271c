/** The page of the API reference, and the files that it loads. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { brotliDecompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { OpenapiDocument } from '../../../api/openapi/document.ts'
import { startApi } from '../../support/api.ts'

const api = await startApi()
const get = (path: string, headers: Record<string, string> = {}) => fetch(api.url + path, { headers })
const html = await (await get('/docs')).text()
const scripts = [...html.matchAll(/<script [^>]*src="([^"]+)"/g)].map(([, path = '']) => path)
const styles = [...html.matchAll(/<link rel="stylesheet" href="([^"]+)"/g)].map(([, path = '']) => path)

describe('GET /docs', () => {
  test('may load scripts and send requests from and to its own origin only', async () => {
    const answer = await get('/docs')
    expect(answer.headers.get('content-type')).toMatch(/^text\/html/)
    const policy = answer.headers.get('content-security-policy')?.split('; ')
    expect(policy).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
      ]),
    )
    const brandLink = `href="${api.services.config.siteUrl}/"`
    expect(html.replace(brandLink, '')).not.toMatch(/<script(?![^>]* src=)|<style| style=|(src|href)="(https?:)?\/\//)
  })

  test('has the name of the service, a link to its site, and the way to a token', () => {
    const { brandName, siteUrl } = api.services.config
    expect(html).toContain(`<title>${brandName} API reference</title>`)
    expect(html).toContain(`<a class="site-brand" href="${siteUrl}/">`)
    expect(html).toMatch(/data-access="token">.*href="#tag\/sign-in\/POST\/api\/v1\/auth\/login"/s)
  })

  test('is the only page with inline styles', async () => {
    expect((await get('/docs')).headers.get('content-security-policy')).toContain("'unsafe-inline'")
    for (const path of ['/openapi.json', '/health', '/metrics', '/docs/0/start.js', '/api/v1/capacity/status'])
      expect((await get(path)).headers.get('content-security-policy'), path).not.toContain('unsafe-inline')
  })

  test('lists every operation for browsers without scripts', async () => {
    const [, list = ''] = /<noscript>(.*)<\/noscript>/s.exec(html) ?? []
    const document = (await (await get('/openapi.json')).json()) as OpenapiDocument
    const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))
    expect(operations.length).toBeGreaterThan(50)
    const listed = [...list.matchAll(/data-operation="(\w+)"/g)].map(([, id]) => id)
    expect(listed.toSorted()).toEqual(operations.map(({ operationId }) => operationId).toSorted())
  })

  test.each([
    ['the first example of a request', 'startRelay', '{}'],
    ['the schema of a request without examples', 'resetPassword', '&quot;required&quot;'],
  ])('shows %s without scripts', (_, id, text) => {
    const [, body = ''] =
      new RegExp(`data-operation="${id}".*?Request body:</p>\\n<pre>(.*?)</pre>`, 's').exec(html) ?? []
    expect(body).toContain(text)
  })
})

describe('the files of the API reference', () => {
  test('are cached for ever under the hash of their content', async () => {
    expect([scripts.length, styles.length]).toEqual([2, 1])
    for (const path of [...scripts, ...styles]) {
      const answer = await get(path)
      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-type')).toMatch(/^text\/(javascript|css); charset=utf-8$/)
      expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    }
    expect((await get((scripts[0] ?? '').replace(/docs\/\w/, 'docs/x'))).status).toBe(404)
  })

  test('are the same with and without compression', async () => {
    for (const path of [...scripts, ...styles, '/docs', '/openapi.json']) {
      const [plain, compressed] = await Promise.all(
        ['identity', 'br'].map((encoding) => get(path, { 'Accept-Encoding': encoding })),
      )
      expect(plain?.headers.get('content-encoding')).toBeNull()
      expect(compressed?.headers.get('content-encoding')).toBe('br')
      expect(compressed?.headers.get('vary')).toContain('Accept-Encoding')
      expect(await plain?.text()).toBe(await compressed?.text())
    }
  })

  test('include the bundle of the version that is named beside it', async () => {
    const vendor = new URL('../../../api/vendor/', import.meta.url)
    const { sha256 } = JSON.parse(await readFile(new URL('scalar-api-reference.json', vendor), 'utf8'))
    const bundle = brotliDecompressSync(await readFile(new URL('scalar-api-reference.js.br', vendor)))
    expect(createHash('sha256').update(bundle).digest('hex')).toBe(sha256)
  })
})
