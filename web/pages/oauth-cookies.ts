/**
 * What a browser carries for us from one page to another, in cookies that live for ten minutes, go to those pages only and
 * are read by no script. Nothing in them is believed: the api judges the secrets, and a path leads to a page of ours or
 * counts as none.
 */
import { z } from 'zod'
import type { Cookie } from '../cookies.ts'
import { localPath } from '../local-path.ts'
import type { Visit } from '../page.ts'
import { providerNames } from './providers.tsx'

const seconds = 600
/** Browsers keep 4096 bytes of a cookie, and drop a longer one without a word. */
const nextMax = 1000
const textMax = 4096

const start = '/relays'
const next = z.string().transform((path) => localPath(path, start))
const secret = z.string().min(1).max(256)

const AuthorizationRequest = z.object({
  provider: z.enum(providerNames),
  intent: z.enum(['sign_in', 'link', 'merge']),
  /** Shows the api that the browser which comes back is the one that left. */
  binding: secret,
  /** The page to go on to. */
  next,
})

/** A round request to a provider. */
export type AuthorizationRequest = z.infer<typeof AuthorizationRequest>

const MergeRequest = z.object({
  id: z.uuid(),
  token: secret,
  /** How the account's owner can prove to be it. */
  methods: z.array(z.enum(['password', ...providerNames])).max(4),
  /** What is to be linked. */
  provider: z.enum(providerNames),
  next,
})

/** A merge that waits for a proof. */
export type MergeRequest = z.infer<typeof MergeRequest>

const places = {
  // Lax, for it has to come along when a provider sends the browser back.
  request: { name: 'svc_oauth', path: '/oauth', sameSite: 'Lax' },
  merge: { name: 'svc_merge', path: '/merge', sameSite: 'Strict' },
} as const

export const authorizationCookie = (request: AuthorizationRequest): Cookie => written(places.request, request)
export const mergeCookie = (merge: MergeRequest): Cookie => written(places.merge, merge)
export const clearAuthorizationCookie: Cookie = { ...places.request, value: '', maxAgeSeconds: 0 }
export const clearMergeCookie: Cookie = { ...places.merge, value: '', maxAgeSeconds: 0 }

/** Undefined when there is none under way in this browser, or what the cookie holds is none. */
export const readAuthorizationRequest = ({ cookie }: Visit): AuthorizationRequest | undefined =>
  read(AuthorizationRequest, cookie(places.request.name))
export const readMergeRequest = ({ cookie }: Visit): MergeRequest | undefined =>
  read(MergeRequest, cookie(places.merge.name))

function written(place: (typeof places)[keyof typeof places], value: AuthorizationRequest | MergeRequest): Cookie {
  const bounded = value.next.length > nextMax ? { ...value, next: start } : value
  return { ...place, value: Buffer.from(JSON.stringify(bounded)).toString('base64url'), maxAgeSeconds: seconds }
}

function read<Value>(schema: z.ZodType<Value>, text: string | undefined): Value | undefined {
  if (!text || text.length > textMax) return undefined
  try {
    return schema.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString())).data
  } catch {
    return undefined
  }
}
