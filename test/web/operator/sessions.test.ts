/** The pages of relay sessions in the operator console. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { fakeInstanceId } from '../../support/fake-relay-provider.ts'
import { markup, startOperatorConsole } from '../../support/operator-console.ts'
import type { History } from '../../support/relays.ts'

const { service, browser } = await startOperatorConsole({ SVC_TEMPORAL_UI_URL: 'http://ui.example/' })
const { api } = service

const activeRelay = async () => {
  const user = await service.user()
  const { session_id: id } = await service.startActiveRelay(user)
  return { user, id, path: `/operator/sessions/${id}` }
}

test('sessions are listed by state, region and account', async () => {
  const { user, id } = await activeRelay()
  const stopping = (await user.start({ connection_id: 'second' })).body.session.session_id
  await user.stop({ session_id: stopping, immediate: true })
  await expect.poll(async () => (await user.active()).sessions.map(({ session_id }) => session_id)).toEqual([id])
  const idsOf = async (query: string) =>
    (await browser.open(`/operator/sessions?user_id=${user.userId}${query}`)).data('session')
  expect((await idsOf('')).toSorted()).toEqual([id, stopping].toSorted())
  expect(await idsOf('&state=active')).toEqual([id])
  expect(await idsOf('&state=stopped&region=local')).toEqual([stopping])
  expect(await idsOf('&region=elsewhere')).toEqual([])
  const form = (await browser.open('/operator/sessions?state=active&region=local')).form('/operator/sessions')
  expect(form.fields).toMatchObject({ state: 'active', region: 'local' })
})

test('a filter that the API refuses is reported', async () => {
  const page = await browser.open('/operator/sessions?user_id=nobody')
  expect([page.status, page.name, page.problem]).toEqual([400, 'operator-sessions', 'invalid_request'])
})

test('the list has pages', async () => {
  const { userId } = await api.given.user()
  await api.sql`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, command_delivered_seq, created_at)
    select ${userId}, 'c' || n, 'there', 'user', 1, now() - make_interval(secs => n) from generate_series(1, 130) n`
  const first = await browser.open(`/operator/sessions?user_id=${userId}`)
  const next = first.links.find((link) => link.includes('cursor=')) ?? ''
  const second = await browser.open(next.replaceAll('&amp;', '&'))
  expect([first.data('session').length, second.data('session').length]).toEqual([100, 30])
  expect(new Set([...first.data('session'), ...second.data('session')]).size).toBe(130)
  await api.sql`delete from users where id = ${userId}`
})

test('a session is shown with its workflow, its transitions, its video and its links', async () => {
  const { user, id, path } = await activeRelay()
  const stats = { publishing: true, bitrate_kbps: 5200, links: 1, bytes_total: 1000, started_at_ms: 1 }
  const events = [{ seq: 1, kind: 'stream_started', age_ms: 0, bitrate_kbps: 5100 }]
  expect((await service.sendReport(id, { stats, events })).status).toBe(200)
  const list = await browser.open(`/operator/sessions?user_id=${user.userId}`)
  expect(list.text).toMatch(/5\.2 Mbps, 1 link(?!s)/)
  const page = await browser.open(path)
  expect([page.name, page.data('state'), page.data('workflow')]).toEqual(['operator-session', ['active'], ['answered']])
  expect(page.data('transition')).toEqual(['provisioning active'])
  expect(page.data('stream-event')).toEqual(['stream_started'])
  expect(page.text).toContain('Stream started, 5.1 Mbps')
  expect(page.data('differs')).toEqual([])
  expect(page.data('ingest')).toEqual(['true'])
  expect(page.text).toContain('198.51.x.x')
  expect(page.html).not.toContain('198.51.100')
  for (const link of [
    `/operator/users/${user.userId}`,
    `/operator/instances?show=all&instance_id=${fakeInstanceId(id)}`,
    `http://ui.example/namespaces/default/workflows/relay-session%2F${id}`,
  ])
    expect(page.links).toContain(link)
})

test('values that the workflow has differently are marked', async () => {
  const { id, path } = await activeRelay()
  await api.sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`
    await tx`update relay_sessions set instance_id = 'another' where id = ${id}`
  })
  const page = await browser.open(path)
  expect(page.html).toMatch(/data-compared="Instance" data-differs/)
  expect(page.html).not.toMatch(/data-compared="State" data-differs/)
})

test('a disconnect needs a reason, ends the relay and is audited', async () => {
  const { user, id, path } = await activeRelay()
  const page = await browser.open(path)
  const refused = await browser.submit(page, `${path}/disconnect`)
  expect([refused.status, refused.problem, refused.data('state')]).toEqual([400, 'reason_required', ['active']])
  const ended = await browser.submit(page, `${path}/disconnect`, { reason: 'abuse' })
  expect([ended.notice, ended.data('state'), ended.hasForm(`${path}/disconnect`)]).toEqual([
    'disconnect',
    ['stopped'],
    false,
  ])
  const [entry] = await api.sql`
    select detail from audit_entries where user_id = ${user.userId} and action = 'session_disconnected'`
  expect(entry?.detail).toEqual({ session_id: id, reason: 'abuse' })
})

test('a public reason is shown to the owner and to operators, and none is needed', async () => {
  const { user, id, path } = await activeRelay()
  const act = async (to: string, publicReason: string) =>
    browser.submit(await browser.open(path), `${path}/transition`, {
      to,
      reason: 'a secret',
      public_reason: publicReason,
    })
  await act('grace', ' ')
  expect((await act('active', 'A test of ours.')).text).toContain('Public reason: A test of ours.')
  const { body } = await api.get<History>(`/relay/sessions/${id}`, { bearer: user.bearer })
  expect(body.transitions.map(({ public_reason }) => public_reason)).toEqual([null, null, 'A test of ours.'])
  expect(JSON.stringify(body)).not.toContain('secret')
})

test('a legal transition by hand is made, and a refused one is reported', async () => {
  const { user, path } = await activeRelay()
  const act = async (to: string) =>
    browser.submit(await browser.open(path), `${path}/transition`, { to, reason: 'a test' })
  const refused = await act('provisioning')
  expect([refused.status, refused.problem, refused.data('state')]).toEqual([409, 'invalid_transition', ['active']])
  const made = await act('grace')
  expect([made.notice, made.data('state')]).toEqual(['transition', ['grace']])
  expect(made.data('transition')).toEqual(['provisioning active', 'active grace'])
  const entries = await api.sql`
    select from audit_entries where user_id = ${user.userId} and detail ->> 'reason' = 'a test'`
  expect(entries.length).toBeGreaterThan(1)
})

test('texts of providers are shown as text, and unknown sessions have no page', async () => {
  const { id, path } = await activeRelay()
  await api.sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`
    await tx`update relay_sessions set region = ${markup}, instance_id = ${markup} where id = ${id}`
  })
  for (const page of [await browser.open(path), await browser.open('/operator/sessions')]) {
    expect(page.text).toContain(markup)
    expect(page.html).not.toContain('<img')
  }
  expect((await browser.open(`/operator/sessions/${randomUUID()}`)).status).toBe(404)
})
