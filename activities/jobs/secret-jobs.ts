/**
 * Seals with the present key what an earlier key has sealed, and what an older version stored in plain text. A round that
 * succeeds has left nothing to another key: then that key may be removed from the configuration.
 */
import type { Database } from '../../db/connection.ts'
import type { Revocation } from '../../db/provider-token-revocations.ts'
import {
  type Page,
  replaceRevocation,
  replaceSealedProviderTokens,
  replaceSessionTokens,
  replaceStreamToken,
  type StaleProviderTokens,
  type StaleStreamToken,
  staleProviderTokens,
  staleRevocations,
  staleSessionTokens,
  staleStreamTokens,
} from '../../db/resealing.ts'
import {
  openSessionToken,
  openStreamToken,
  type SessionTokenField,
  type StoredSessionTokens,
  sealSessionToken,
  sealStreamToken,
} from '../../db/sealed-tokens.ts'
import type { Logger } from '../../platform/log.ts'
import type { Sealing } from '../../platform/sealing.ts'
import type { OAuthProviderName } from '../../providers/oauth/provider.ts'
import { type TokenField, tokenPlace } from '../../providers/oauth/tokens.ts'
import type { Job } from './jobs.ts'

interface Needs {
  readonly sql: Database
  readonly log: Logger
  readonly sealing: Sealing
}

const everySeconds = 600
/** A round ends after this long, and the next one goes on: it stays well within its lease. */
const roundMillisMax = 60_000
/** Rows that are read at once, and written at once over the connections of the pool. */
const pageRows = 200
const firstId = '00000000-0000-0000-0000-000000000000'

export const secretJobs = (needs: Needs): readonly Job[] => [
  {
    name: 'reseal_secrets',
    everySeconds,
    roundSecondsMax: everySeconds,
    run: (signal) => resealSecrets(needs, signal),
  },
]

async function resealSecrets(needs: Needs, signal?: AbortSignal): Promise<void> {
  const round = { until: Date.now() + roundMillisMax, signal }
  const failed =
    (await resealAll(needs, round, 'users', staleStreamTokens, resealStreamToken)) +
    (await resealAll(needs, round, 'relay_sessions', staleSessionTokens, resealSessionTokens)) +
    (await resealAll(needs, round, 'user_oauth_accounts', staleProviderTokens, resealProviderTokens)) +
    (await resealAll(needs, round, 'provider_token_revocations', staleRevocations, resealRevocation))
  if (failed > 0) throw new Error(`${failed} rows could not be sealed with the present key: the log names them`)
}

/** When a round ends, whether or not all is done. */
interface Round {
  readonly until: number
  readonly signal: AbortSignal | undefined
}

type Reseal<Row> = (needs: Needs, row: Row) => Promise<void>

/** Answers how many rows could not be sealed again. Throws when the round has to end before all are. */
async function resealAll<Row extends { readonly id: string }>(
  needs: Needs,
  { until, signal }: Round,
  table: string,
  stale: (sql: Database, page: Page) => Promise<Row[]>,
  reseal: Reseal<Row>,
): Promise<number> {
  const { sql, log, sealing } = needs
  let failed = 0
  for (let afterId = firstId; ; ) {
    const rows = await stale(sql, { keyId: sealing.keyId, afterId, rowsMax: pageRows })
    const outcomes = await Promise.allSettled(rows.map(async (row) => reseal(needs, row)))
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') continue
      failed += 1
      log.error(
        { err: outcome.reason, table, id: rows[index]?.id },
        'a secret could not be sealed with the present key',
      )
    }
    afterId = rows.at(-1)?.id ?? afterId
    if (rows.length < pageRows) return failed
    if (signal?.aborted || Date.now() > until)
      throw new Error('not all secrets are sealed with the present key yet: the next round goes on')
  }
}

const resealStreamToken: Reseal<StaleStreamToken> = ({ sql, sealing }, row) =>
  replaceStreamToken(sql, row, sealStreamToken(sealing, row.id, openStreamToken(sealing, row.id, row)))

const resealSessionTokens: Reseal<StoredSessionTokens> = ({ sql, sealing }, row) => {
  const resealed = (field: SessionTokenField) => {
    const token = openSessionToken(sealing, row, field)
    return token === null ? null : sealSessionToken(sealing, row.id, field, token)
  }
  return replaceSessionTokens(sql, row, { pairToken: resealed('pair_token'), relayWsToken: resealed('relay_ws_token') })
}

const resealProviderTokens: Reseal<StaleProviderTokens> = ({ sql, sealing }, row) => {
  const { accessTokenSealed, refreshTokenSealed } = row
  return replaceSealedProviderTokens(sql, row, {
    accessTokenSealed: accessTokenSealed && resealed(sealing, accessTokenSealed, row, 'access_token'),
    refreshTokenSealed: refreshTokenSealed && resealed(sealing, refreshTokenSealed, row, 'refresh_token'),
  })
}

const resealRevocation: Reseal<Revocation> = ({ sql, sealing }, row) =>
  replaceRevocation(sql, row, resealed(sealing, row.tokenSealed, row, row.field))

/** A provider's token, for the same place. */
function resealed(
  sealing: Sealing,
  sealed: string,
  { userId, provider }: { readonly userId: string; readonly provider: OAuthProviderName },
  field: TokenField,
): string {
  const place = tokenPlace(userId, provider, field)
  return sealing.seal(sealing.open(sealed, place).text, place)
}
