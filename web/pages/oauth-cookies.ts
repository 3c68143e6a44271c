/**
 * Cookies that hold state in the browser during an OAuth authorization request and a merge. They expire after ten
 * minutes, are sent to the pages that need them only, and scripts cannot read them. Their contents are not trusted: the
 * API verifies the secrets, and paths are checked here.
 */
import { z } from 'zod'
import type { Cookie } from '../cookies.ts'
import { localPath } from '../local-path.ts'
import type { Visit } from '../page.ts'
import { providerNames } from './providers.tsx'

const maxAgeSeconds = 600
/** Browsers silently drop cookies of more than 4096 bytes. */
const nextLengthMax = 1000
const valueLengthMax = 4096

const fallbackPath = '/relays'
const next = z.string().transform((path) => localPath(path, fallbackPath))
const secret = z.string().min(1).max(256)

const AuthorizationRequest = z.object({
  provider: z.enum(providerNames),
  intent: z.enum(['sign_in', 'link', 'merge']),
  /** Proves to the API that the callback arrives in the browser that started the request. */
  binding: secret,
  /** The page to open afterwards. */
  next,
})

/** An authorization request that waits for the provider's callback. */
export type AuthorizationRequest = z.infer<typeof AuthorizationRequest>

const MergeRequest = z.object({
  id: z.uuid(),
  token: secret,
  /** How the owner of the account can prove that it is theirs. */
  methods: z.array(z.enum(['password', ...providerNames])).max(4),
  /** The provider to link. */
  provider: z.enum(providerNames),
  next,
})

/** A merge that waits for proof that the account belongs to the visitor. */
export type MergeRequest = z.infer<typeof MergeRequest>

const cookies = {
  // Lax, because the provider's redirect to the callback is cross-site.
  authorization: { name: 'svc_oauth', path: '/oauth', sameSite: 'Lax' },
  merge: { name: 'svc_merge', path: '/merge', sameSite: 'Strict' },
} as const

export const authorizationCookie = (request: AuthorizationRequest): Cookie => serialize(cookies.authorization, request)
export const mergeCookie = (merge: MergeRequest): Cookie => serialize(cookies.merge, merge)
export const clearAuthorizationCookie: Cookie = { ...cookies.authorization, value: '', maxAgeSeconds: 0 }
export const clearMergeCookie: Cookie = { ...cookies.merge, value: '', maxAgeSeconds: 0 }

/** Undefined when the cookie is missing or malformed. */
export const readAuthorizationRequest = ({ cookie }: Visit): AuthorizationRequest | undefined =>
  parse(AuthorizationRequest, cookie(cookies.authorization.name))
/** Undefined when the cookie is missing or malformed. */
export const readMergeRequest = ({ cookie }: Visit): MergeRequest | undefined =>
  parse(MergeRequest, cookie(cookies.merge.name))

function serialize(
  cookie: (typeof cookies)[keyof typeof cookies],
  request: AuthorizationRequest | MergeRequest,
): Cookie {
  const bounded = request.next.length > nextLengthMax ? { ...request, next: fallbackPath } : request
  return { ...cookie, value: Buffer.from(JSON.stringify(bounded)).toString('base64url'), maxAgeSeconds }
}

function parse<Value>(schema: z.ZodType<Value>, value: string | undefined): Value | undefined {
  if (!value || value.length > valueLengthMax) return undefined
  try {
    return schema.safeParse(JSON.parse(Buffer.from(value, 'base64url').toString())).data
  } catch {
    return undefined
  }
}
