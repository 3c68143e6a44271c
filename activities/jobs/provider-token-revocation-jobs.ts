/** Revokes the tokens of unlinked identities at their providers: behind the answer, and again until it has worked. */
import pLimit from 'p-limit'
import type { Database } from '../../db/connection.ts'
import {
  abandonRevocations,
  deleteRevocation,
  dueRevocations,
  postponeRevocation,
  type Revocation,
} from '../../db/provider-token-revocations.ts'
import type { Logger } from '../../platform/log.ts'
import type { Sealing } from '../../platform/sealing.ts'
import type { OAuthProvider, OAuthProviderName } from '../../providers/oauth/provider.ts'
import { tokenPlace } from '../../providers/oauth/tokens.ts'
import type { Job } from './jobs.ts'

interface Needs {
  readonly sql: Database
  readonly log: Logger
  readonly sealing: Sealing
  readonly providers: ReadonlyMap<OAuthProviderName, OAuthProvider>
}

/** With four calls at a time that is 25 turns of 6 s at most, half of what a round may take. */
const roundMax = 100
const callsMax = 4

export const providerTokenRevocationJobs = (needs: Needs): readonly Job[] => [
  {
    name: 'revoke_provider_tokens',
    everySeconds: 5,
    roundSecondsMax: 300,
    run: (signal) => revokeProviderTokens(needs, signal),
  },
]

async function revokeProviderTokens(needs: Needs, signal?: AbortSignal): Promise<void> {
  const { sql, log, providers } = needs
  const limit = pLimit(callsMax)
  const due = await dueRevocations(sql, [...providers.keys()], roundMax)
  await Promise.all(
    due.map((revocation) =>
      limit(async () => {
        if (!signal?.aborted) await revoke(needs, revocation)
      }),
    ),
  )
  for (const { provider, tokens } of await abandonRevocations(sql))
    log.warn({ provider, tokens }, 'tokens of unlinked identities could not be revoked within a day and are forgotten')
}

async function revoke(
  { sql, log, sealing, providers }: Needs,
  { id, provider, userId, field, tokenSealed }: Revocation,
): Promise<void> {
  try {
    const token = sealing.open(tokenSealed, tokenPlace(userId, provider, field)).text
    await providers.get(provider)?.revoke(token)
    await deleteRevocation(sql, id)
  } catch (error) {
    log.warn({ err: error, provider, revocation_id: id }, 'a token could not be revoked yet')
    await postponeRevocation(sql, id)
  }
}
