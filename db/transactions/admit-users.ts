/**
 * The admission of requests with an access token: whether the user is still signed in, the count of the request in its
 * rate limit window, and what the route reads of the account, for many requests in one statement.
 */

import { type AccountRow, accountColumns } from '../billing/entitlements.ts'
import type { Fragment, Sql } from '../connection.ts'
import { type FirstStepsRow, firstStepsColumns } from '../identity/first-steps.ts'
import { type ProfileRow, profileColumns } from '../identity/profiles.ts'
import { addToWindow, type RateLimitWindow, windowsInOrder } from '../rate-limits.ts'
import { type LiveRelays, type ShownSessionRow, selectShown } from '../relay/sessions.ts'
import type { StoredStreamToken } from '../sealed-tokens.ts'

export interface AdmissionRequest {
  readonly userId: string
  readonly authSessionId: string
  /** The window in which the request counts; undefined if it does not count. */
  readonly rateLimitKey: string | undefined
}

export interface Admission<Read = undefined> {
  /** Undefined if the request does not count. */
  readonly window: RateLimitWindow | undefined
  readonly read: Read
}

/** Everything of an account that a query can read without the usage cycle, which these rows determine. */
interface AccountRead {
  readonly profile: ProfileRow
  readonly account: AccountRow
  readonly firstSteps: FirstStepsRow
  readonly liveRelays: LiveRelays
}

/**
 * One result for each request, in their order: undefined if the auth session does not belong to the user, is revoked,
 * or the account is disabled. Such a request is not counted.
 */
type Admissions<Read = undefined> = Promise<(Admission<Read> | undefined)[]>

interface AdmissionRow {
  place: number
  requests: number | null
  resetSeconds: number | null
}

type RelaysRow = AdmissionRow & ShownSessionRow & StoredStreamToken
type AccountAndRelaysRow = RelaysRow &
  Omit<ProfileRow, 'id' | 'createdAt'> &
  AccountRow &
  FirstStepsRow & { accountCreatedAt: Date }

export async function admitUsers(sql: Sql, requests: readonly AdmissionRequest[]): Admissions {
  const rows = await sql<AdmissionRow[]>`
    ${countSignedIn(sql, requests, sql`select`)}
    select place, requests, reset_seconds from signed_in left join counted on key = rate_limit_key`
  return toAdmissions(requests, rows, () => undefined)
}

/** With the stream token and the live sessions of each user. */
export async function admitUsersWithRelays(sql: Sql, requests: readonly AdmissionRequest[]): Admissions<LiveRelays> {
  const rows = await sql<RelaysRow[]>`
    ${countSignedIn(sql, requests, sql`select stream_token_sealed`)}
    select place, requests, reset_seconds, stream_token_sealed, live.* ${fromSignedInWithRelays(sql)}`
  return toAdmissions(requests, rows, toLiveRelays)
}

export async function admitUsersWithAccount(sql: Sql, requests: readonly AdmissionRequest[]): Admissions<AccountRead> {
  const rows = await sql<AccountAndRelaysRow[]>`
    ${countSignedIn(sql, requests, sql`select ${profileColumns(sql)}, ${accountColumns(sql)}, ${firstStepsColumns(sql)}`)}
    select place, requests, reset_seconds, email, is_email_verified, stream_token_sealed, is_disabled,
      signed_in.created_at as account_created_at, deletion_due_at, linked_providers, plan_tier, plan_status, addons,
      period_start, period_end, payment_grace_ends_at, surplus_ends_at, is_enabled_by_operator, is_deletion_scheduled, as_of,
      active_managed_conns, has_started_relay, has_sent_video, has_played, live.*
    ${fromSignedInWithRelays(sql)}`
  return toAdmissions(requests, rows, (ofRequest, { userId }) => ({
    profile: { ...ofRequest[0], id: userId, createdAt: ofRequest[0].accountCreatedAt },
    // A row without a live session has no user id.
    account: { ...ofRequest[0], userId },
    firstSteps: ofRequest[0],
    liveRelays: toLiveRelays(ofRequest),
  }))
}

/**
 * Two common tables: `signed_in` has a row for each request that is admitted, with the columns of its user, and
 * `counted` has their windows. Only admitted requests are counted: the holder of a revoked token must not use up the
 * limit of its user.
 */
const countSignedIn = (sql: Sql, requests: readonly AdmissionRequest[], selectUser: Fragment): Fragment => sql`
  with asked as (
    -- The parameters are wrapped in a select, so that Postgres plans once instead of for each number of requests.
    select place::int, user_id, auth_session_id, rate_limit_key
    from unnest((select ${requests.map(({ userId }) => userId)}::uuid[]),
      (select ${requests.map(({ authSessionId }) => authSessionId)}::uuid[]),
      (select ${requests.map(({ rateLimitKey }) => rateLimitKey ?? null)}::text[]))
      with ordinality as asked (user_id, auth_session_id, rate_limit_key, place)
  ), signed_in as (
    select asked.place, asked.user_id, asked.rate_limit_key, account.* from asked
    -- The limits keep the lookups by primary key: a plan for an unknown number of requests would read whole tables.
    cross join lateral (
      select s.user_id from auth_sessions s where s.id = auth_session_id and s.revoked_at is null limit 1
    ) alive
    cross join lateral (
      ${selectUser} from users where users.id = asked.user_id and users.disabled_at is null limit 1
    ) account
    where alive.user_id = asked.user_id
  ), counted as (
    insert into rate_limit_windows as w (key, opened_at, requests)
    select rate_limit_key, now(), count(*) from signed_in, set_config('synchronous_commit', 'off', true)
    where rate_limit_key is not null
    -- The same order as in the other statements that lock windows.
    group by rate_limit_key order by rate_limit_key collate "C"
    ${addToWindow(sql)}
  )`

/** Sessions with the command `disconnect` come last, because their connection may have a newer session. */
const fromSignedInWithRelays = (sql: Sql): Fragment => sql`
  from signed_in left join counted on key = rate_limit_key
  left join lateral (${selectShown(sql)} where user_id = signed_in.user_id and state <> 'stopped') live on true
  order by live.command = 'disconnect', live.created_at, live.id`

type NonEmpty<Row> = readonly [Row, ...Row[]]

const toLiveRelays = (ofRequest: NonEmpty<RelaysRow>): LiveRelays => ({
  streamToken: { streamTokenSealed: ofRequest[0].streamTokenSealed },
  sessions: ofRequest[0].id === null ? [] : [...ofRequest],
})

/** @param rows one for each admitted request, or several if its user has several live sessions. */
function toAdmissions<Row extends AdmissionRow, Read>(
  requests: readonly AdmissionRequest[],
  rows: readonly Row[],
  toRead: (ofRequest: NonEmpty<Row>, request: AdmissionRequest) => Read,
): (Admission<Read> | undefined)[] {
  const byPlace = new Map<number, [Row, ...Row[]]>()
  const totals = new Map<string, RateLimitWindow>()
  for (const row of rows) {
    const ofSameRequest = byPlace.get(row.place)
    if (ofSameRequest) ofSameRequest.push(row)
    else byPlace.set(row.place, [row])
    const key = requests[row.place - 1]?.rateLimitKey
    const { requests: total, resetSeconds } = row
    if (key !== undefined && total !== null && resetSeconds !== null) totals.set(key, { requests: total, resetSeconds })
  }
  const isAdmitted = (index: number) => byPlace.has(index + 1)
  const charges = requests.map(({ rateLimitKey: key }, index) =>
    key !== undefined && isAdmitted(index) ? ({ key, amount: 1 } as const) : undefined,
  )
  const windows = windowsInOrder(charges, totals)
  return requests.map((request, index) => {
    const ofRequest = byPlace.get(index + 1)
    return ofRequest && { window: windows[index], read: toRead(ofRequest, request) }
  })
}
