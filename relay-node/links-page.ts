/**
 * The page of a relay about the links of its stream, for the owner. It comes from the relay itself, so that nothing
 * about single links passes the service. A ticket of the service opens it; the key in the page reads the links for as
 * long as the relay runs for this session.
 */
import { randomBytes } from 'node:crypto'
import { describeLink } from '../domain/relay/link-sentences.ts'
import { areEqualSecrets } from '../platform/equal-secrets.ts'
import { isLinksTicket, linksKey } from '../platform/links-tickets.ts'
import { linksScript, linksStyle } from './links-page-assets.ts'
import type { LinkStats } from './stats.ts'

export interface LinksPageOptions {
  /** That of the instance. */
  readonly secret: string
  /** Undefined while the relay has no session. */
  readonly sessionId: () => string | undefined
  /** With full addresses. */
  readonly links: () => readonly LinkStats[]
}

export interface LinksReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** @returns undefined for a path that is not one of the page. */
export function answerLinks(
  path: string,
  query: URLSearchParams,
  options: LinksPageOptions,
  now: number,
): LinksReply | undefined {
  const { secret, links } = options
  const sessionId = options.sessionId()
  if (path === '/links') {
    const isValid = sessionId !== undefined && isLinksTicket(query.get('ticket') ?? '', secret, sessionId, now)
    return isValid ? showPage(linksKey(secret, sessionId)) : refuse()
  }
  if (path !== '/links/data') return undefined
  const isKnown = sessionId !== undefined && areEqualSecrets(query.get('key') ?? '', linksKey(secret, sessionId))
  return isKnown
    ? replyWith(200, 'application/json', JSON.stringify({ links: links().map(showLink) }))
    : replyWith(403, 'application/json', JSON.stringify({ error: { code: 'forbidden', message: refusalText } }))
}

const showLink = (link: LinkStats, index: number, { length }: readonly LinkStats[]) => ({
  ...link,
  sentence: describeLink(
    {
      verdict: link.verdict,
      reason: link.reason,
      lateMillis: link.late_ms ?? 0,
      repeatPct: link.repeat_pct,
      silentMillis: link.last_ms_ago,
    },
    index + 1,
    length,
  ),
})

function replyWith(status: number, type: string, body: string, policy = "default-src 'none'"): LinksReply {
  const headers = {
    'content-type': type,
    'cache-control': 'no-store',
    'content-security-policy': `${policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  }
  return { status, headers, body }
}

/** @param script undefined for none. */
function replyWithPage(status: number, main: string, script?: string): LinksReply {
  const nonce = randomBytes(16).toString('base64')
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'`
  const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Links of your stream</title>
<style nonce="${nonce}">${linksStyle}</style>
</head>
<body>
<main>
<h1>Links of your stream</h1>
${main}
</main>
${script === undefined ? '' : `<script nonce="${nonce}">${script}</script>`}
</body>
</html>
`
  return replyWith(status, 'text/html; charset=utf-8', page, policy)
}

const refusalText = 'This page was opened too long ago. Open it again from your relays page.'

const refuse = (): LinksReply => replyWithPage(403, `<p>${refusalText}</p>`)

/** @param key has no character that HTML would read. */
const showPage = (key: string): LinksReply =>
  replyWithPage(
    200,
    `<p class="muted">Read from your relay once a second. Nothing of it passes our servers.</p>
<p id="news" role="status">Reading the links …</p>
<ol id="links" data-key="${key}"></ol>
<noscript><p>This page needs JavaScript.</p></noscript>`,
    linksScript,
  )
