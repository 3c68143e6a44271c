/** The tokens of a new relay session, sealed for it before it has a row. */
import { randomBytes, randomUUID } from 'node:crypto'
import { type SealedToken, type SessionTokenField, sealSessionToken } from '../../db/sealed-tokens.ts'
import type { Sealing } from '../../platform/sealing.ts'

interface NewSession {
  readonly sessionId: string
  readonly pairToken: SealedToken
  readonly relayWsToken: SealedToken
}

export function newRelaySession(sealing: Sealing): NewSession {
  const sessionId = randomUUID()
  const sealed = (field: SessionTokenField) =>
    sealSessionToken(sealing, sessionId, field, randomBytes(24).toString('base64url'))
  return { sessionId, pairToken: sealed('pair_token'), relayWsToken: sealed('relay_ws_token') }
}
