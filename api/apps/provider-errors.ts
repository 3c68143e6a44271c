/** How the provider answers errors: as flat JSON, and as a page where a browser has nowhere to go. */
import type { Context } from 'koa'
import type { ErrorOut, KoaContextWithOIDC } from 'oidc-provider'

const pageRoutes = new Set(['authorization', 'resume'])

export function renderProviderError(ctx: KoaContextWithOIDC, out: ErrorOut, brandName: string): void {
  const { error, error_description } = out
  if (!pageRoutes.has(ctx.oidc?.route ?? '')) {
    ctx.body = { error, error_description }
    return
  }
  showErrorPage(ctx, brandName, [error, error_description].filter((text) => text).join(': '))
}

/** For a browser that cannot be led back to its app. The caller sets the status. */
export function showErrorPage(ctx: Pick<Context, 'type' | 'body'>, brandName: string, detail: string): void {
  ctx.type = 'html'
  ctx.body = errorPage(brandName, detail)
}

const errorPage = (brandName: string, detail: string): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeText(brandName)}</title></head>
<body>
<h1>Your streaming software couldn’t be connected</h1>
<p>The request is not valid, has expired, or was started in another browser. Nothing was changed.</p>
<p>Start again from your streaming software.</p>
<p><code>${escapeText(detail)}</code></p>
</body>
</html>
`

const escapeText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
