/** Replies that caches may keep, and that are not sent again to a client that has them. */
import { createHash } from 'node:crypto'
import type { Reply, TextBody } from './replies.ts'
import type { ReadHeader } from './requests.ts'

/** For how long caches answer without asking. */
const secondsMax = 60

/** Replies 200 with the body, or 304 when `If-None-Match` names its `ETag`. */
export function cacheableReply(header: ReadHeader, text: TextBody): Reply {
  const tag = `"${createHash('sha256').update(text.text).digest('base64url').slice(0, 22)}"`
  const headers = { ETag: tag, 'Cache-Control': `public, max-age=${secondsMax}` }
  return hasTag(header('if-none-match'), tag) ? { status: 304, headers } : { status: 200, text, headers }
}

/** Proxies that compress a body make its tag a weak one. */
const hasTag = (value: string | undefined, tag: string): boolean =>
  (value ?? '').split(',').some((each) => each.trim().replace(/^W\//, '') === tag)
