/** `GET /docs` with its files, and `GET /openapi.json`. */
import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { Refusal } from '../http/refusals.ts'
import type { OpenapiDocument } from './document.ts'
import { type PageNames, pagePolicy, renderPage } from './page.ts'
import { memoize, type PageFile, plainFile, readPageFiles } from './page-files.ts'

/** @param createDocument called by the first request that needs the document. */
export function addPageRoutes(router: Router, names: PageNames, createDocument: () => OpenapiDocument): void {
  const document = memoize(async () => createDocument())
  const json = memoize(async () =>
    plainFile('application/json; charset=utf-8', Buffer.from(JSON.stringify(await document()))),
  )
  const files = memoize(readPageFiles)
  const page = memoize(async () => {
    const html = renderPage(await document(), await files(), names)
    return plainFile('text/html; charset=utf-8', Buffer.from(html))
  })

  router.get('/openapi.json', async (ctx) => send(ctx, await json()))

  router.get('/docs', async (ctx) => {
    ctx.set('Content-Security-Policy', pagePolicy)
    await send(ctx, await page())
  })

  router.get('/docs/:hash/:name', async (ctx) => {
    const file = (await files()).at(ctx.path)
    if (!file) throw new Refusal('not_found')
    ctx.set('Cache-Control', 'public, max-age=31536000, immutable')
    await send(ctx, file)
  })
}

async function send(ctx: Context, { type, brotli, content }: PageFile): Promise<void> {
  ctx.vary('Accept-Encoding')
  ctx.type = type
  if (ctx.acceptsEncodings('br', 'identity') === 'br') {
    ctx.set('Content-Encoding', 'br')
    ctx.body = brotli
  } else ctx.body = await content()
}
