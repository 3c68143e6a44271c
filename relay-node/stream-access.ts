/** Who may publish and play, by the stream id of the SRT handshake. */
import { areEqualSecrets } from '../platform/equal-secrets.ts'
import type { Rejection } from './srt-packets.ts'

export type Role = 'publish' | 'play'

interface StreamRequest {
  readonly role: Role
  readonly token: string
}

/**
 * Accepts `publish/live/<token>` and `play/live/<token>`, and the form of SRT's access control guide:
 * `#!::r=<resource>,m=publish`, where the resource is the token, `live/<token>` or one of the two forms above.
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
  const { token } = /^(live\/)?(?<token>[^/]+)$/.exec(resource)?.groups ?? {}
  if (token !== undefined) return { role, token }
  const request = parsePath(resource)
  return request?.role === role ? request : undefined
}

/** The modes of SRT's access control guide. `bidirectional` is not offered. */
const roles: ReadonlyMap<string, Role> = new Map([
  ['publish', 'publish'],
  ['request', 'play'],
])

function parsePath(text: string): StreamRequest | undefined {
  const { role, token } = /^(?<role>publish|play)\/live\/(?<token>[^/]+)$/.exec(text)?.groups ?? {}
  return role === undefined || token === undefined ? undefined : { role: role as Role, token }
}

/**
 * @param streamToken undefined for a relay without a session, which refuses all callers.
 * @returns why a caller on the port of a role is refused; undefined when it is admitted.
 */
export function findObjection(
  role: Role,
  streamId: string | undefined,
  streamToken: string | undefined,
): Rejection | undefined {
  const request = streamId === undefined ? undefined : parseStreamId(streamId)
  if (request === undefined || streamToken === undefined || !areEqualSecrets(request.token, streamToken))
    return 'unauthorized'
  return request.role === role ? undefined : 'bad_mode'
}
