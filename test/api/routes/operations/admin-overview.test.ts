/** The figures of the operator console's first page. */
import { beforeAll, expect, test } from 'vitest'
import {
  writeActive,
  writeAge,
  writeCommand,
  writeProvisionFailed,
  writeStopGrace,
  writeStopped,
} from '../../../support/relay-rows.ts'
import { eventually, operator, startService, type TestService } from '../../../support/relays.ts'

interface Overview {
  readonly sessions: Readonly<Record<'provisioning' | 'active' | 'grace', number>>
  readonly minutes: readonly Readonly<
    Record<'started' | 'stopped' | 'provisioning_failed' | 'sign_ins_failed', number> & { readonly at: string }
  >[]
  readonly provisioning: { readonly sessions: number; readonly p50_seconds: number; readonly p95_seconds: number }
  readonly commands: { readonly undelivered: number; readonly oldest_seconds: number }
  readonly billing_events: Readonly<Record<string, number>>
  readonly jobs: { readonly total: number; readonly overdue: readonly string[]; readonly failing: readonly string[] }
  readonly workers: { readonly alive: number }
  readonly outbox: { readonly pending: number; readonly failed: number; readonly oldest_seconds: number }
  readonly orphans: { readonly instances: number; readonly oldest_seconds: number }
  readonly regions: readonly Readonly<Record<string, unknown>>[]
}

const image = { image_id: 'ami-1', version: '2.0.0', released_at: '2026-01-02T03:04:05Z' }
const regions = JSON.stringify([{ region: 'eu', display_name: 'Europe', provider: 'local', capacity: 50, image }])

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false, variables: { SVC_REGIONS: regions } })
})

const read = async (): Promise<Overview> =>
  (await service.api.get<Overview>('/admin/overview', { headers: operator })).body
/** Waits until the figures are newer than the cached ones. */
const readUntil = (isWanted: (overview: Overview) => boolean) => eventually(read, isWanted)

const startSession = async (): Promise<string> => (await (await service.user()).start()).body.session.session_id

const total = (overview: Overview, figure: 'started' | 'stopped' | 'provisioning_failed' | 'sign_ins_failed') =>
  overview.minutes.reduce((sum, minute) => sum + minute[figure], 0)

test('counts live sessions by state, what began and ended in the last hour, and the time of provisioning', async () => {
  const { sql } = service.api
  const sessions = await Promise.all(Array.from({ length: 6 }, startSession))
  const [, active = '', grace = '', stopped = '', failed = '', old = ''] = sessions
  await writeAge(sql, active, 1000)
  for (const id of [active, stopped]) await writeActive(sql, id)
  await writeStopGrace(sql, grace)
  await sql`update relay_sessions set state = 'grace', reason = 'stop_requested', version = version + 1,
    grace_started_at = now(), grace_ends_at = now() where id = ${stopped}`
  await writeStopped(sql, stopped)
  await writeProvisionFailed(sql, failed, null)
  await writeAge(sql, old, 2 * 3600)
  // The last of the rows above.
  const overview = await readUntil((figures) => total(figures, 'started') === 5)
  expect(overview.sessions).toEqual({ provisioning: 2, active: 1, grace: 1 })
  expect(overview.minutes).toHaveLength(60)
  expect(overview.minutes.map(({ at }) => at)).toEqual(overview.minutes.map(({ at }) => at).toSorted())
  const figures = (['started', 'stopped', 'provisioning_failed'] as const).map((figure) => total(overview, figure))
  expect(figures).toEqual([5, 2, 1])
  expect(overview.provisioning.sessions).toBe(3)
  expect(overview.provisioning.p95_seconds).toBeGreaterThan(500)
  expect(overview.provisioning.p50_seconds).toBeLessThan(500)
  expect(overview.regions).toEqual([
    { region: 'eu', display_name: 'Europe', status: 'available', capacity: 50, sessions: 4, drained_at: null },
  ])
})

test('counts failed sign-ins of users and operators in their minute', async () => {
  const before = total(await read(), 'sign_ins_failed')
  const user = await service.user()
  for (let index = 0; index < 3; index += 1)
    await service.api.post('/auth/login', { email: user.email, password: 'not the password' })
  const wrong = { Authorization: `Basic ${Buffer.from('operator:wrong').toString('base64')}` }
  await service.api.get('/admin/jobs', { headers: wrong })
  await readUntil((figures) => total(figures, 'sign_ins_failed') === before + 4)
})

test('reports what waits, fails or has no owner', async () => {
  const { sql } = service.api
  const { undelivered } = (await read()).commands
  await writeCommand(sql, await startSession(), 'stop')
  await sql`insert into jobs (name, due_at, last_error) values ('late', now() - interval '1 hour', null),
    ('broken', now() + interval '1 hour', 'it failed')`
  await sql`insert into jobs (name, due_at, leased_until) values ('running', now() - interval '1 hour', now() + interval '1 hour')`
  await sql`insert into instances (instance_id, region, unowned_since) values ('i-lost', 'eu', now() - interval '5 minutes')`
  await sql`insert into billing_events (provider, event_key, type, status) values ('sandbox', 'a', 't', 'parked'),
    ('sandbox', 'b', 't', 'dead'), ('sandbox', 'c', 't', 'dead')`
  await sql`insert into outbox_messages (channel, kind, created_at) values ('email', 't', now() - interval '1 minute')`
  await sql`insert into outbox_messages (channel, kind, next_attempt_at, failed_at) values ('email', 't', null, now())`
  const overview = await readUntil(({ outbox }) => outbox.failed === 1)
  expect(overview.jobs.overdue).toEqual(['late'])
  expect(overview.jobs.failing).toEqual(['broken'])
  expect(overview.orphans.instances).toBe(1)
  expect(overview.orphans.oldest_seconds).toBeGreaterThan(299)
  expect(overview.billing_events).toMatchObject({ pending: 0, parked: 1, dead: 2, unresolved: 0 })
  expect([overview.outbox.pending, overview.outbox.failed]).toEqual([1, 1])
  expect(overview.outbox.oldest_seconds).toBeGreaterThan(59)
  expect(overview.workers.alive).toBe(0)
  expect(overview.commands.undelivered).toBe(undelivered + 1)
})
