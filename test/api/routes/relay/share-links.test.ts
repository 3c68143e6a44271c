/** Share links: who may make and end one, and what its holders see. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type ErrorBody, type GivenUser, statusAndCode } from '../../../support/api.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { deleteExpiredRows } from '../../../support/retention.ts'
import { longRelayTimeouts } from '../../../support/subscribers.ts'

const sharedLimit = 40
const service = await startFakeRelayService({
  variables: { ...longRelayTimeouts, SVC_RATE_LIMITS: `relay_start=100,relay_history=600,shared=${sharedLimit}` },
})
const { api } = service

type User = Pick<GivenUser, 'bearer'>
interface ShareLink {
  readonly url: string
  readonly expires_at: string
}
interface SharedSession {
  readonly started_at: string
  readonly ended_at: string | null
  readonly points: readonly { readonly at: string; readonly bitrate_kbps: number }[]
  readonly stream_events: readonly { readonly kind: string }[]
}

const share = (user: User, id: string) =>
  api.post<ShareLink>(`/relay/sessions/${id}/share`, {}, { bearer: user.bearer })
const revoke = (user: User, id: string) => api.delete(`/relay/sessions/${id}/share`, { bearer: user.bearer })
const tokenOf = ({ url }: ShareLink) => url.replace(/^.*\/shared\//, '')
const openLink = (link: ShareLink) => api.get<SharedSession & Partial<ErrorBody>>(`/shared/${tokenOf(link)}`)
const openings = async (...links: readonly ShareLink[]) =>
  (await Promise.all(links.map(openLink))).map(({ status }) => status)

async function startStreaming() {
  const user = await service.user()
  const { session_id: id } = await service.startActiveRelay(user, { connection_id: 'secret-name' })
  const stats = {
    publishing: true,
    bitrate_kbps: 5200,
    links: 3,
    loss_pct: 0.2,
    rtt_ms: 41,
    players: 2,
    started_at_ms: 1,
  }
  const events = [{ seq: 1, kind: 'stream_started', age_ms: 0, bitrate_kbps: 5000 }]
  expect((await service.sendReport(id, { stats, events })).status).toBe(200)
  return { user, id }
}

const shareLinkOf = async (user: User, id: string) =>
  (await api.get<{ share_link: object | null }>(`/relay/sessions/${id}`, { bearer: user.bearer })).body.share_link

describe('a share link', () => {
  test('shows times, bitrates and stream events of its session, and nothing else', async () => {
    const { user, id } = await startStreaming()
    expect(await shareLinkOf(user, id)).toBeNull()
    const { status, body: link } = await share(user, id)
    expect(status).toBe(201)
    expect(link.url).toMatch(new RegExp(`^${api.services.config.siteUrl}/shared/[A-Za-z0-9_-]{43}$`))
    const daysLeft = (Date.parse(link.expires_at) - Date.now()) / 86_400_000
    expect(daysLeft).toBeGreaterThan(6.9)
    expect(daysLeft).toBeLessThan(7.1)
    expect(await shareLinkOf(user, id)).toEqual({ created_at: expect.any(String), expires_at: link.expires_at })
    const shared = await openLink(link)
    expect(shared.headers.get('cache-control')).toBe('no-store')
    expect(shared.body).toEqual({
      started_at: expect.any(String),
      ended_at: null,
      expires_at: link.expires_at,
      points: [{ at: expect.any(String), bitrate_kbps: 5200 }],
      stream_events: [{ kind: 'stream_started', at: expect.any(String), bitrate_kbps: 5000 }],
    })
    await user.stop({ session_id: id, immediate: true })
    const ended = (await openLink(link)).body
    expect(ended.ended_at).toBeTruthy()
    expect(ended.stream_events.map(({ kind }) => kind)).toEqual(['stream_started', 'stream_ended'])
  })

  test('is stored as a hash only', async () => {
    const { user, id } = await startStreaming()
    const token = tokenOf((await share(user, id)).body)
    const rows = await api.sql`select to_jsonb(l)::text as row from share_links l where session_id = ${id}`
    expect(rows).toHaveLength(1)
    expect(JSON.stringify(rows)).not.toContain(token)
  })

  test('is replaced by a new one of the session, and revoked once and again', async () => {
    const { user, id } = await startStreaming()
    const first = (await share(user, id)).body
    const second = (await share(user, id)).body
    expect(await openings(first, second)).toEqual([404, 200])
    expect((await revoke(user, id)).status).toBe(204)
    expect(statusAndCode(await openLink(second))).toEqual([404, 'not_found'])
    expect((await revoke(user, id)).status).toBe(204)
    expect(await shareLinkOf(user, id)).toBeNull()
    const entries = await api.sql<{ action: string }[]>`
      select action from audit_entries where user_id = ${user.userId} and action like 'share_link%' order by at, id`
    expect(entries.map(({ action }) => action)).toEqual([
      'share_link_created',
      'share_link_created',
      'share_link_revoked',
    ])
  })

  test('is refused and not revoked for the session of another user, and without a sign-in', async () => {
    const { user, id } = await startStreaming()
    const link = (await share(user, id)).body
    const other = await service.user()
    for (const sessionId of [id, randomUUID()]) {
      expect(statusAndCode(await share(other, sessionId))).toEqual([404, 'not_found'])
      expect(statusAndCode(await revoke(other, sessionId))).toEqual([404, 'not_found'])
    }
    expect(statusAndCode(await api.post(`/relay/sessions/${id}/share`, {}))).toEqual([401, 'unauthorized'])
    expect(await openings(link)).toEqual([200])
  })

  test('that has expired is unknown, and its row is deleted', async () => {
    const { user, id } = await startStreaming()
    const link = (await share(user, id)).body
    await api.sql`update share_links set expires_at = now() where session_id = ${id}`
    expect(statusAndCode(await openLink(link))).toEqual([404, 'not_found'])
    expect(await shareLinkOf(user, id)).toBeNull()
    await deleteExpiredRows(api)
    expect(await api.sql`select from share_links where session_id = ${id}`).toHaveLength(0)
  })

  test('ends with its account, also before the account is erased', async () => {
    const { user, id } = await startStreaming()
    const link = (await share(user, id)).body
    await api.sql`update users set disabled_at = now() where id = ${user.userId}`
    expect(await openings(link)).toEqual([404])
    await api.sql`update users set disabled_at = null where id = ${user.userId}`
    expect(await openings(link)).toEqual([200])
    await api.sql`
      update users set deletion_due_at = now() + interval '1 day', deletion_attempt_at = now() + interval '1 day'
      where id = ${user.userId}`
    expect(await openings(link)).toEqual([404])
  })

  test('cannot be guessed more often than the limit of a network', async () => {
    const { user, id } = await startStreaming()
    const link = (await share(user, id)).body
    const guesses = Array.from({ length: 3 * sharedLimit }, () => api.get(`/shared/${randomUUID()}`))
    const statuses = (await Promise.all(guesses)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([404, 429]))
    expect(statusAndCode(await openLink(link))).toEqual([429, 'rate_limited'])
  })
})
