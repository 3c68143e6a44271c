/** The job that revokes the tokens of unlinked identities at their providers, and retries until that succeeds. */
import pLimit from 'p-limit'
import type { Database } from '../../db/connection.ts'
import {
  abandonRevocations,
  deleteRevocation,
  listDueRevocations,
  postponeRevocation,
  type Revocation,
} from '../../db/identity/provider-token-revocations.ts'
import type { Logger } from '../../platform/log.ts'
import type { Sealing } from '../../platform/sealing.ts'
import type { OAuthProvider, OAuthProviderName } from '../../providers/oauth/provider.ts'
import { tokenPlace } from '../../providers/oauth/tokens.ts'
import type { Job } from '../worker/jobs.ts'

interface Deps {
  readonly sql: Database
  readonly log: Logger
  readonly sealing: Sealing
  readonly providers: ReadonlyMap<OAuthProviderName, OAuthProvider>
}

/** With four concurrent calls of 6 s at most, these take 150 s: half of what a run may take. */
const revocationsMax = 100
const callsMax = 4

export const providerTokenRevocationJobs = (deps: Deps): readonly Job[] => [
  {
    name: 'revoke_provider_tokens',
    everySeconds: 5,
    runSecondsMax: 300,
    run: (signal) => revokeProviderTokens(deps, signal),
  },
]

async function revokeProviderTokens(deps: Deps, signal?: AbortSignal): Promise<void> {
  const { sql, log, providers } = deps
  const due = await listDueRevocations(sql, [...providers.keys()], revocationsMax)
  await pLimit(callsMax).map(due, async (revocation) => {
    if (!signal?.aborted) await revoke(deps, revocation)
  })
  for (const { provider, tokens } of await abandonRevocations(sql))
    log.warn({ provider, tokens }, 'tokens of unlinked identities could not be revoked within a day and were deleted')
}

async function revoke(
  { sql, log, sealing, providers }: Deps,
  { id, provider, userId, field, tokenSealed }: Revocation,
): Promise<void> {
  try {
    const token = sealing.open(tokenSealed, tokenPlace(userId, provider, field)).text
    await providers.get(provider)?.revoke(token)
    await deleteRevocation(sql, id)
  } catch (error) {
    log.warn({ err: error, provider, revocation_id: id }, 'a token could not be revoked; it is retried')
    await postponeRevocation(sql, id)
  }
}
