/** The usage page and its CSV, in a browser without scripts. */
import { expect, test } from 'vitest'
import { startApiAndSite } from '../../support/site.ts'

const { api, site } = await startApiAndSite({ api: { SVC_TIME_BANK_HOURS_PER_RELAY: '1' } })

/** A signed-in account in the middle of a billing period of 20 days. */
async function subscriber() {
  const user = await api.given.user()
  await api.sql`
    update users set plan_tier = 'paid', plan_status = 'active', period_start = now() - interval '10 days',
      period_end = now() + interval '10 days'
    where id = ${user.userId}`
  const browser = site.browser()
  browser.cookies.set('svc_session', user.bearer)
  return { user, browser }
}

/** A stopped relay of this connection that ran for so many seconds, so many days ago. */
async function use(userId: string, connectionId: string, seconds: number, daysAgo: number): Promise<void> {
  const [session] = await api.sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, command_delivered_seq)
    values (${userId}, ${connectionId}, 'local', 'user', 1) returning id`
  const id = session?.id ?? ''
  await api.sql`update relay_sessions set state = 'stopped', reason = 'provision_failed', stopped_at = now() where id = ${id}`
  // At noon, so that it does not cross midnight.
  await api.sql`
    insert into usage_intervals (session_id, user_id, started_at, ended_at)
    select ${id}, ${userId}, noon, noon + make_interval(secs => ${seconds})
    from (select date_trunc('day', now(), 'UTC') - make_interval(days => ${daysAgo}) + interval '12 hours' as noon) at`
}

test('the days and relays of the page add up to what the account has used', async () => {
  const { user, browser } = await subscriber()
  await use(user.userId, 'default', 600, 3)
  await use(user.userId, 'second', 300, 3)
  await use(user.userId, 'default', 60, 5)
  const page = await browser.open('/usage')
  expect([page.status, page.data('consumed-seconds'), page.data('included-seconds')]).toEqual([200, ['960'], ['3600']])
  expect(page.data('connection')).toEqual(['default', 'second'])
  const bars = [...page.html.matchAll(/data-day="([^"]+)" data-seconds="(\d+)"/g)].filter(
    ([, , seconds]) => seconds !== '0',
  )
  expect(bars.map(([, , seconds]) => Number(seconds))).toEqual([60, 900])
  // Half of the period has passed.
  expect(Math.abs(Number(page.data('forecast-seconds')[0]) - 1920)).toBeLessThanOrEqual(1)
  expect(page.data('forecast')).toEqual(['enough'])
  expect(page.html).toContain('aria-current="page"')
})

test('the forecast says when the included time runs out, and that it has', async () => {
  const { user, browser } = await subscriber()
  await use(user.userId, 'default', 2400, 3)
  expect((await browser.open('/usage')).data('forecast')).toEqual(['short'])
  await use(user.userId, 'default', 1300, 4)
  expect((await browser.open('/usage')).data('forecast')).toEqual(['exhausted'])
})

test('a free account without relay time gets the way to the plan instead of empty charts', async () => {
  const user = await api.given.user()
  const browser = site.browser()
  browser.cookies.set('svc_session', user.bearer)
  const page = await browser.open('/usage')
  expect([page.data('usage'), page.links.includes('/account#plan'), page.links.includes('/usage.csv')]).toEqual([
    ['none'],
    true,
    false,
  ])
})

test('a paid account without relay time sees its included time', async () => {
  const page = await (await subscriber()).browser.open('/usage')
  expect([page.data('consumed-seconds'), page.data('days')]).toEqual([['0'], ['none']])
})

test('the CSV has a row for each day and relay, as a file', async () => {
  const { user, browser } = await subscriber()
  await use(user.userId, '-default', 600, 3)
  await use(user.userId, 'second', 300, 2)
  const reply = await browser.request('GET', '/usage.csv')
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8'])
  expect(reply.headers.get('content-disposition')).toMatch(/^attachment; filename="relay-time-\d{4}-\d\d-\d\d\.csv"$/)
  const day = (daysAgo: number) => new Date(Date.now() - daysAgo * 86_400_000).toISOString().slice(0, 10)
  expect(reply.text).toBe(`day_utc,relay,seconds\r\n${day(3)},'-default,600\r\n${day(2)},second,300\r\n`)
})

test('the page and the CSV need a sign-in', async () => {
  for (const path of ['/usage', '/usage.csv'])
    expect((await site.browser().open(path)).path).toBe(`/login?next=${encodeURIComponent(path)}`)
})
