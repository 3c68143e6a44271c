/** The pages of the operator console: health, jobs, audit and regions. */
import { expect, test } from 'vitest'
import { operator, operatorPassword } from '../../support/relays.ts'
import { startApiAndSite } from '../../support/site.ts'

const image = { image_id: 'ami-1', version: '2.0.0', released_at: '2026-01-02T03:04:05Z' }
const regions = ['eu', 'us'].map((region) => ({
  region,
  display_name: `Region ${region}`,
  provider: 'local',
  capacity: 5,
  image,
}))

const { api, site } = await startApiAndSite({
  api: { SVC_OPERATOR_PASSWORD: operatorPassword, SVC_REGIONS: JSON.stringify(regions) },
})

const browser = site.browser()
await browser.post('/operator/sign-in', { password: operatorPassword })

test('the overview marks what needs attention', async () => {
  await api.sql`insert into billing_events (provider, event_key, type, status) values ('sandbox', 'a', 't', 'dead')`
  await api.sql`insert into jobs (name, due_at) values ('late', now() - interval '1 hour')`
  const readTiles = async () => {
    const page = await browser.open('/operator')
    const health = page.data('health')
    return Object.fromEntries(page.data('tile').map((tile, index) => [tile, health[index]]))
  }
  // The figures may be a second old.
  await expect
    .poll(readTiles)
    .toMatchObject({ live: 'good', workers: 'bad', jobs: 'bad', billing: 'warn', orphans: 'good' })
})

test('the overview counts failed sign-ins of the last hour in its chart and its table', async () => {
  const user = await api.given.user()
  await api.post('/auth/login', { email: user.email, password: 'not the password' })
  await expect
    .poll(async () => {
      const page = await browser.open('/operator')
      const totals = page.data('total')
      return page.data('chart').flatMap((chart, index) => (chart === 'Failed sign-ins' ? [totals[index]] : []))
    })
    .toEqual(['1'])
})

test('a job that failed is shown with its error', async () => {
  await api.sql`
    insert into jobs (name, runs, failures, last_started_at, last_error, due_at)
    values ('broken', 2, 1, now(), '<b>refused</b>', now() + interval '1 hour')`
  const page = await browser.open('/operator/jobs')
  const results = page.data('result')
  const jobs = Object.fromEntries(page.data('job').map((job, index) => [job, results[index]]))
  expect(jobs).toMatchObject({ broken: 'failed', late: 'never' })
  expect(page.html).not.toContain('<b>refused')
  expect(page.text).toContain('<b>refused</b>')
})

test('a region is drained and resumed with a reason, which is in the audit', async () => {
  const drained = await browser.submit(await browser.open('/operator/regions'), '/operator/regions/eu/drain', {
    reason: 'maintenance <i>tonight</i>',
  })
  expect([drained.notice, drained.data('drained')]).toEqual(['drain', ['true', 'false']])
  const resumed = await browser.submit(drained, '/operator/regions/eu/resume', { reason: 'done' })
  expect([resumed.notice, resumed.data('drained')]).toEqual(['resume', ['false', 'false']])
  const audit = await browser.open('/operator/audit?action=region_drained')
  expect(audit.data('detail')).toEqual(['reason', 'region'])
  expect(audit.text).toContain('maintenance <i>tonight</i>')
  expect(audit.html).not.toContain('<i>tonight')
})

test.each(['', '   '])('an act with the reason %j changes nothing', async (reason) => {
  const page = await browser.open('/operator/regions')
  const refused = await browser.submit(page, '/operator/regions/us/drain', { reason })
  expect([refused.status, refused.problem]).toEqual([400, 'reason_required'])
  expect(refused.data('drained')).toEqual(['false', 'false'])
})

test('an act on an unknown region is a 404', async () => {
  expect((await browser.post('/operator/regions/mars/drain', { reason: 'x' })).status).toBe(404)
})

test('an act from another site changes nothing', async () => {
  const reply = await browser.request('POST', '/operator/regions/us/drain', {
    body: { reason: 'x' },
    from: 'cross-site',
  })
  expect(reply.status).toBe(403)
  expect((await browser.open('/operator/regions')).data('drained')).toEqual(['false', 'false'])
})

test('an act without a session leads to the sign-in, and then to the page with its form', async () => {
  const page = await site.browser().post('/operator/regions/us/drain', { reason: 'x' })
  expect(page.name).toBe('operator-sign-in')
  expect(page.form('/operator/sign-in').fields.next).toBe('/operator/regions')
})

test('the audit is filtered by action, initiator and account, and continues on further pages', async () => {
  const user = await api.given.user()
  await api.sql`
    insert into audit_entries (initiator, action, user_id)
    select 'user', 'did_something', ${user.userId} from generate_series(1, 60)`
  const page = await browser.open(`/operator/audit?action=did_something&initiator=user&user_id=${user.userId}`)
  expect(page.data('action')).toEqual(Array.from({ length: 50 }, () => 'did_something'))
  const older = page.links.find((link) => link.includes('cursor=')) ?? ''
  expect((await browser.open(older)).data('action')).toHaveLength(10)
  const none = await browser.open(`/operator/audit?initiator=operator&user_id=${user.userId}`)
  expect(none.data('action')).toEqual([])
  expect(none.form('/operator/audit').fields).toMatchObject({ initiator: 'operator', user_id: user.userId })
})

test.each(['action=No%20such', 'user_id=7', 'initiator=nobody'])('the audit refuses the filter %s', async (query) => {
  const page = await browser.open(`/operator/audit?${query}`)
  expect([page.status, page.problem]).toEqual([400, 'invalid_request'])
})

test('sign-ins and sign-outs of operators are in the audit', async () => {
  const other = site.browser()
  const page = await other.post('/operator/sign-in', { password: operatorPassword })
  await other.submit(page, '/operator/sign-out')
  const actions = (await browser.open('/operator/audit?initiator=operator')).data('action')
  expect(actions).toContain('operator_signed_in')
  expect(actions).toContain('operator_signed_out')
})

test('the password still opens the API', async () => {
  expect((await api.get('/admin/overview', { headers: operator })).status).toBe(200)
})
