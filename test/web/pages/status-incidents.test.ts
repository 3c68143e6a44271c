/** Incidents on the status page, and their feed at the site's address. */
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { highLimits } from '../../support/environment.ts'
import { eventually } from '../../support/relays.ts'
import { startApiAndSite } from '../../support/site.ts'
import type { Page } from '../../support/site-page.ts'
import { childOf, childrenOf, parseXml } from '../../support/xml.ts'

const { api, site } = await startApiAndSite({
  api: {
    SVC_RATE_LIMITS: highLimits({ incidents: 10_000, capacity: 10_000 }),
    SVC_REGIONS: JSON.stringify([
      { region: 'eu', display_name: 'Frankfurt & <there>', provider: 'local', default: true },
      { region: 'us', display_name: 'Virginia', provider: 'local' },
    ]),
  },
})

beforeEach(async () => {
  await api.sql`delete from incidents`
  await api.sql`update incident_watch set began_at = now() - interval '100 days'`
  await openWhen(({ text }) => text.includes('No incidents in the last 90 days.'))
})

interface Incident {
  readonly region?: string | null
  readonly part?: string
  readonly kind?: string
  readonly note?: string | null
  readonly beganDaysAgo: number
  /** Null while it is open. */
  readonly endedDaysAgo?: number | null
}

async function addIncident(incident: Incident): Promise<string> {
  const {
    region = 'eu',
    part = 'starts',
    kind = 'starts_failing',
    note = null,
    beganDaysAgo,
    endedDaysAgo = null,
  } = incident
  const id = randomUUID()
  await api.sql`
    insert into incidents (id, region, part, kind, began_at, confirmed_at, ended_at, note, noted_at)
    values (${id}, ${region}, ${part}, ${kind}, now() - make_interval(days => ${beganDaysAgo}), now(),
      now() - make_interval(days => ${endedDaysAgo}), ${note}, case when ${note}::text is not null then now() end)`
  return id
}

/** The API shares its list for a second. */
const openWhen = (isExpected: (page: Page) => boolean) => eventually(() => site.browser().open('/status'), isExpected)
const openWith = (incidents: number) => openWhen(({ data }) => data('incident').length === incidents)

describe('the status page', () => {
  test('says that there were no incidents in 90 days, or since the service began to measure', async () => {
    const whole = await openWith(0)
    expect(whole.text).toContain('No incidents in the last 90 days.')
    expect([whole.data('strip'), whole.data('incident-days')]).toEqual([
      ['service', 'eu', 'us'],
      ['0', '0', '0'],
    ])
    await api.sql`update incident_watch set began_at = '2026-11-20T10:00:00Z'::timestamptz`
    const part = await openWhen(({ text }) => text.includes('began measuring'))
    expect(part.text).toContain('No incidents since the service began measuring on 20 November 2026 (UTC)')
  })

  test('shows each incident with its region, time and note, and its days in the strip of its region', async () => {
    const open = await addIncident({ beganDaysAgo: 2 })
    const note = '<script>alert(1)</script> It is over.'
    const over = await addIncident({
      region: null,
      part: 'api',
      kind: 'part_outage',
      beganDaysAgo: 20,
      endedDaysAgo: 19,
      note,
    })
    const page = await openWith(2)
    expect(page.data('status')).toEqual(['incident'])
    expect(page.data('incident')).toEqual(['starts_failing', 'part_outage'])
    expect(page.data('incident-days')).toEqual(['2', '3', '0'])
    expect(page.text).toContain('Frankfurt & <there>: Relay starts failed Ongoing Since')
    expect(page.text).toMatch(/The API did not respond Over .* to .* \(24 h\)/)
    expect(page.text).toContain(note)
    expect(page.html).not.toContain('<script>alert')
    for (const id of [open, over]) expect(page.html).toContain(`id="incident-${id}"`)
  })

  test('says in words what each strip shows', async () => {
    await addIncident({ beganDaysAgo: 2, endedDaysAgo: 2 })
    const { html, data } = await openWith(1)
    expect(html).toContain('aria-label="Virginia, last 90 days: no incidents"')
    expect(html).toMatch(/aria-label="Frankfurt [^"]*, last 90 days: incidents on 1 day, listed below"/)
    expect(data('status')).toEqual(['operational'])
  })

  test('keeps the strip of a region that was removed', async () => {
    await addIncident({ region: 'old', beganDaysAgo: 5, endedDaysAgo: 4 })
    const page = await openWith(1)
    expect(page.data('strip')).toEqual(['service', 'eu', 'us', 'old'])
  })

  test('lets feed readers find the feed', async () => {
    const page = await site.browser().open('/status')
    expect(page.html).toContain(
      '<link rel="alternate" type="application/atom+xml" href="/incidents.atom" title="Incidents"/>',
    )
    expect(page.links).toContain('/incidents.atom')
  })
})

test('the feed has the incidents at the address of the site, and is not sent again unchanged', async () => {
  const id = await addIncident({ beganDaysAgo: 3, endedDaysAgo: 3 })
  await openWith(1)
  const response = await fetch(`${site.url}/incidents.atom`)
  expect(response.headers.get('content-type')).toBe('application/atom+xml; charset=utf-8')
  const feed = parseXml(await response.text())
  expect(childrenOf(feed, 'entry').map((entry) => childOf(entry, 'id').text)).toEqual([`urn:uuid:${id}`])
  expect(childOf(feed, 'link').attributes.href).toBe(`${site.url}/incidents.atom`)
  const tag = response.headers.get('etag') ?? ''
  const again = await fetch(`${site.url}/incidents.atom`, { headers: { 'If-None-Match': tag } })
  expect([again.status, await again.text()]).toEqual([304, ''])
})
