/**
 * The job that seals with the current key what an earlier key sealed, and what an older version stored in plain text.
 * After a successful run nothing depends on another key, which may be removed from the configuration.
 */
import type { Database } from '../../db/connection.ts'
import { resealEndpointField } from '../../db/notifications/endpoints.ts'
import { resealMessage } from '../../db/notifications/outbox.ts'
import {
  listStaleEndpoints,
  listStaleMessages,
  listStalePlayKeys,
  listStaleProviderTokens,
  listStaleRevocations,
  listStaleSessionTokens,
  listStaleStreamTokens,
  type Page,
  replaceMessageContent,
  replacePlayKey,
  replaceRevocation,
  replaceSealedEndpoint,
  replaceSealedProviderTokens,
  replaceSessionTokens,
  replaceStreamToken,
  type StaleEndpoint,
  type StaleMessage,
  type StaleProviderTokens,
  type StaleRevocation,
  type StaleStreamToken,
} from '../../db/operations/resealing.ts'
import {
  openPlayKey,
  openSessionToken,
  openStreamToken,
  type SessionTokenField,
  type StoredPlayKey,
  type StoredSessionTokens,
  sealPlayKey,
  sealSessionToken,
  sealStreamToken,
} from '../../db/sealed-tokens.ts'
import type { Logger } from '../../platform/log.ts'
import type { Sealing } from '../../platform/sealing.ts'
import type { OAuthProviderName } from '../../providers/oauth/provider.ts'
import { type TokenField, tokenPlace } from '../../providers/oauth/tokens.ts'
import type { Job } from './jobs.ts'

interface Deps {
  readonly sql: Database
  readonly log: Logger
  readonly sealing: Sealing
}

const everySeconds = 600
/** A run ends after this time, well within its lease, and the next one continues. */
const runMillisMax = 60_000
/** Rows that one statement reads, and that are written concurrently. */
const pageRows = 200
const firstId = '00000000-0000-0000-0000-000000000000'

export const secretJobs = (deps: Deps): readonly Job[] => [
  {
    name: 'reseal_secrets',
    everySeconds,
    runSecondsMax: everySeconds,
    run: (signal) => resealSecrets(deps, signal),
  },
]

async function resealSecrets(deps: Deps, signal?: AbortSignal): Promise<void> {
  const run = { until: Date.now() + runMillisMax, signal }
  const failed =
    (await resealAll(deps, run, 'users', listStaleStreamTokens, resealStreamToken)) +
    (await resealAll(deps, run, 'play_keys', listStalePlayKeys, resealPlayKey)) +
    (await resealAll(deps, run, 'relay_sessions', listStaleSessionTokens, resealSessionTokens)) +
    (await resealAll(deps, run, 'user_oauth_accounts', listStaleProviderTokens, resealProviderTokens)) +
    (await resealAll(deps, run, 'provider_token_revocations', listStaleRevocations, resealRevocation)) +
    (await resealAll(deps, run, 'outbox_messages', listStaleMessages, resealMessageContent)) +
    (await resealAll(deps, run, 'notification_endpoints', listStaleEndpoints, resealEndpoint))
  if (failed > 0) throw new Error(`${failed} rows could not be sealed with the current key: the log names them`)
}

/** Ends the run even when not all rows are sealed. */
interface RunLimits {
  readonly until: number
  readonly signal: AbortSignal | undefined
}

type Reseal<Row> = (deps: Deps, row: Row) => Promise<void>

/** Returns how many rows could not be sealed again. Throws when the run has to end before all are read. */
async function resealAll<Row extends { readonly id: string }>(
  deps: Deps,
  { until, signal }: RunLimits,
  table: string,
  stale: (sql: Database, page: Page) => Promise<Row[]>,
  reseal: Reseal<Row>,
): Promise<number> {
  const { sql, log, sealing } = deps
  let failed = 0
  for (let afterId = firstId; ; ) {
    const rows = await stale(sql, { keyId: sealing.keyId, afterId, rowsMax: pageRows })
    const outcomes = await Promise.allSettled(rows.map(async (row) => reseal(deps, row)))
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') continue
      failed += 1
      log.error(
        { err: outcome.reason, table, id: rows[index]?.id },
        'a secret could not be sealed with the current key',
      )
    }
    afterId = rows.at(-1)?.id ?? afterId
    if (rows.length < pageRows) return failed
    if (signal?.aborted || Date.now() > until)
      throw new Error('not all secrets are sealed with the current key yet: the next run continues')
  }
}

const resealStreamToken: Reseal<StaleStreamToken> = ({ sql, sealing }, row) =>
  replaceStreamToken(sql, row, sealStreamToken(sealing, row.id, openStreamToken(sealing, row.id, row)))

const resealPlayKey: Reseal<StoredPlayKey> = ({ sql, sealing }, row) =>
  replacePlayKey(sql, row, sealPlayKey(sealing, row.id, openPlayKey(sealing, row)))

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

const resealRevocation: Reseal<StaleRevocation> = ({ sql, sealing }, row) =>
  replaceRevocation(sql, row, resealed(sealing, row.tokenSealed, row, row.field))

const resealMessageContent: Reseal<StaleMessage> = ({ sql, sealing }, row) =>
  replaceMessageContent(sql, row, resealMessage(sealing, row))

const resealEndpoint: Reseal<StaleEndpoint> = ({ sql, sealing }, row) =>
  replaceSealedEndpoint(sql, row, {
    urlSealed: resealEndpointField(sealing, row.id, 'endpoint_url', row.urlSealed),
    secretSealed: row.secretSealed && resealEndpointField(sealing, row.id, 'endpoint_secret', row.secretSealed),
  })

/** The provider's token, sealed with the current key for the same account and field. */
function resealed(
  sealing: Sealing,
  sealed: string,
  { userId, provider }: { readonly userId: string; readonly provider: OAuthProviderName },
  field: TokenField,
): string {
  const place = tokenPlace(userId, provider, field)
  return sealing.seal(sealing.open(sealed, place).text, place)
}
