/** Replies that caches may keep, and that are not sent again to a client that has them. */
import { entityTagOf, isNamed } from '../../platform/koa/entity-tag.ts'
import type { Reply, TextBody } from './replies.ts'
import type { ReadHeader } from './requests.ts'

/** For how long caches answer without asking. */
const secondsMax = 60

/** Replies 200 with the body, or 304 when `If-None-Match` names its `ETag`. */
export function cacheableReply(header: ReadHeader, text: TextBody): Reply {
  const tag = entityTagOf(text.text)
  const headers = { ETag: tag, 'Cache-Control': `public, max-age=${secondsMax}` }
  return isNamed(tag, header('if-none-match')) ? { status: 304, headers } : { status: 200, text, headers }
}
