/** Who may publish and play, by the stream id of the SRT handshake. */
import { type Admission, findPlayKey, hasStreamToken } from './admission.ts'
import type { Rejection } from './srt-packets.ts'

export type Role = 'publish' | 'play'

interface StreamRequest {
  readonly role: Role
  /** The stream token or a play key. */
  readonly secret: string
}

/**
 * Accepts `publish/live/<secret>` and `play/live/<secret>`, and the form of SRT's access control guide:
 * `#!::r=<resource>,m=publish`, where the resource is the secret, `live/<secret>` or one of the two forms above.
 * @returns undefined for any other text.
 */
export function parseStreamId(streamId: string): StreamRequest | undefined {
  if (!streamId.startsWith('#!')) return parsePath(streamId)
  if (!streamId.startsWith('#!::')) return undefined
  const fields = new Map<string, string>()
  for (const field of streamId.slice(4).split(',')) {
    const [name = '', ...value] = field.split('=')
    // A repeated key could be read differently by the engine.
    if (value.length === 0 || fields.has(name)) return undefined
    fields.set(name, value.join('='))
  }
  const role = roles.get(fields.get('m') ?? 'request')
  const resource = fields.get('r')
  if (role === undefined || resource === undefined) return undefined
  const { secret } = /^(live\/)?(?<secret>[^/]+)$/.exec(resource)?.groups ?? {}
  if (secret !== undefined) return { role, secret }
  const request = parsePath(resource)
  return request?.role === role ? request : undefined
}

/** The modes of SRT's access control guide. `bidirectional` is not offered. */
const roles: ReadonlyMap<string, Role> = new Map([
  ['publish', 'publish'],
  ['request', 'play'],
])

function parsePath(text: string): StreamRequest | undefined {
  const { role, secret } = /^(?<role>publish|play)\/live\/(?<secret>[^/]+)$/.exec(text)?.groups ?? {}
  return role === undefined || secret === undefined ? undefined : { role: role as Role, secret }
}

export interface Access {
  /** Why the caller is refused; absent when it is admitted. */
  readonly objection?: Rejection
  /** The hash of the play key that admits it; absent for the stream token. */
  readonly playKey?: string
}

/**
 * Whether a caller on the port of a role is admitted. The secret is compared with everything that the relay has,
 * whatever it turns out to be, so that the time of an answer shows nothing.
 * @param admission undefined for a relay without a session, which refuses all callers.
 */
export function judgeAccess(role: Role, streamId: string | undefined, admission: Admission | undefined): Access {
  const request = streamId === undefined ? undefined : parseStreamId(streamId)
  if (request === undefined || admission === undefined) return { objection: 'unauthorized' }
  const isToken = hasStreamToken(request.secret, admission)
  const playKey = findPlayKey(request.secret, admission)
  const isPlayer = role === 'play' && request.role === 'play'
  if (isPlayer && playKey !== undefined) return { playKey }
  if (!isToken || (isPlayer && !admission.canTokenPlay)) return { objection: 'unauthorized' }
  return request.role === role ? {} : { objection: 'bad_mode' }
}
