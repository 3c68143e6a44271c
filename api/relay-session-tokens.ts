/** The id and the sealed tokens of a new relay session, and a play key for a connection without one. */
import { randomBytes, randomUUID } from 'node:crypto'
import { createPlayKey, type NewPlayKey } from '../db/relay/play-keys.ts'
import { type SealedToken, type SessionTokenField, sealSessionToken } from '../db/sealed-tokens.ts'
import type { Sealing } from '../platform/sealing.ts'

interface NewRelaySession {
  readonly sessionId: string
  readonly pairToken: SealedToken
  readonly relayWsToken: SealedToken
  readonly playKey: NewPlayKey
}

export function createRelaySessionTokens(sealing: Sealing): NewRelaySession {
  const sessionId = randomUUID()
  const createToken = (field: SessionTokenField) =>
    sealSessionToken(sealing, sessionId, field, randomBytes(24).toString('base64url'))
  return {
    sessionId,
    pairToken: createToken('pair_token'),
    relayWsToken: createToken('relay_ws_token'),
    playKey: createPlayKey(sealing),
  }
}
