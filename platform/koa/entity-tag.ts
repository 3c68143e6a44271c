/** Entity tags, with which a client asks whether the body that it has is still the present one (RFC 9110). */
import { createHash } from 'node:crypto'

export const entityTagOf = (text: string): string =>
  `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`

/** Whether `If-None-Match` names the tag. Proxies that compress a body make its tag a weak one. */
export const isNamed = (tag: string, ifNoneMatch: string | undefined): boolean =>
  (ifNoneMatch ?? '').split(',').some((each) => each.trim().replace(/^W\//, '') === tag)
