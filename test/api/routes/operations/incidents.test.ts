/** Incidents for everyone, their feed, and what operators write about them. */
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { startApi, statusAndCode } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { eventually, operator, operatorPassword } from '../../../support/relays.ts'
import { childOf, childrenOf, parseXml } from '../../../support/xml.ts'

const api = await startApi({
  SVC_OPERATOR_PASSWORD: operatorPassword,
  SVC_SITE_URL: 'https://relays.example.com',
  SVC_RATE_LIMITS: highLimits({ incidents: 10_000 }),
  SVC_REGIONS: JSON.stringify([{ region: 'eu', display_name: 'Europe & <more>', provider: 'local' }]),
})

interface Incident extends Record<string, unknown> {
  readonly id: string
}
interface Incidents {
  readonly measured_since: string
  readonly incidents: readonly Incident[]
}

beforeEach(async () => {
  await api.sql`delete from incidents`
  await api.sql`delete from audit_entries`
  await incidents((list) => list.length === 0)
})

/** The list is shared for a second. */
const incidents = async (isExpected: (list: readonly Incident[]) => boolean) =>
  (
    await eventually(
      async () => (await api.get<Incidents>('/incidents')).body,
      (body) => isExpected(body.incidents),
    )
  ).incidents

const act = (path: string, body: object = {}) =>
  api.post<{ incident: Incident }>(`/admin/incidents${path}`, body, { headers: operator })
const listed = async () =>
  (await api.get<Incidents>('/admin/incidents', { headers: operator })).body.incidents.map(({ id }) => id)
const readFeed = (headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${api.url}/api/v1/incidents/feed`, { headers })

/** As the job writes one. */
async function addMeasured(daysAgo = 0, kind = 'starts_failing'): Promise<string> {
  const id = randomUUID()
  const began = api.sql`now() - make_interval(days => ${daysAgo})`
  await api.sql`
    insert into incidents (id, region, part, kind, began_at, confirmed_at)
    values (${id}, 'eu', 'starts', ${kind}, ${began}, ${began})`
  return id
}

describe('the list', () => {
  test('shows incidents newest first with the names of their regions, to anyone', async () => {
    const [older, newer] = [await addMeasured(2), await addMeasured(1, 'region_closed')]
    const list = await incidents(({ length }) => length === 2)
    expect(list.map(({ id }) => id)).toEqual([newer, older])
    expect(list[1]).toEqual({
      id: older,
      region: 'eu',
      region_name: 'Europe & <more>',
      part: 'starts',
      kind: 'starts_failing',
      title: 'Relay starts failed',
      explanation: expect.stringContaining('did not become ready'),
      note: null,
      began_at: expect.stringMatching(/Z$/),
      ended_at: null,
      updated_at: list[1]?.began_at,
    })
  })

  test('has no suspicions, and none that ended more than 90 days ago', async () => {
    await api.sql`insert into incidents (part, kind, began_at) values ('api', 'part_outage', now())`
    await addMeasured(95)
    await api.sql`update incidents set ended_at = now() - interval '91 days' where confirmed_at is not null`
    const shown = await addMeasured(95, 'region_closed')
    expect((await incidents(({ length }) => length > 0)).map(({ id }) => id)).toEqual([shown])
  })

  test('says since when the service measures, and is not sent again unchanged', async () => {
    const { body, headers } = await api.get<Incidents>('/incidents')
    expect(Date.parse(body.measured_since)).toBeLessThanOrEqual(Date.now())
    expect(headers.get('cache-control')).toBe('public, max-age=60')
    const again = await api.get('/incidents', { headers: { 'If-None-Match': `W/${headers.get('etag')}, "other"` } })
    expect([again.status, again.body]).toEqual([304, {}])
  })
})

describe('the feed', () => {
  test('is valid Atom, also with markup in a note', async () => {
    const id = await addMeasured()
    await act(`/${id}/note`, { note: '</content><script>alert(1)</script> & "more"' })
    await incidents(([first]) => first?.note !== undefined && first.note !== null)
    const response = await readFeed()
    expect(response.headers.get('content-type')).toBe('application/atom+xml; charset=utf-8')
    const feed = parseXml(await response.text())
    const [entry] = childrenOf(feed, 'entry')
    expect(childOf(entry, 'title').text).toBe('Europe & <more>: Relay starts failed')
    expect(childOf(entry, 'content').text).toContain('</content><script>alert(1)</script> & "more"')
    expect(childOf(feed, 'id').text).toBe('https://relays.example.com/incidents.atom')
  })

  test('has a tag that changes with it', async () => {
    const first = await readFeed()
    const tag = first.headers.get('etag') ?? ''
    const again = await readFeed({ 'If-None-Match': tag })
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', tag])
    await addMeasured()
    await incidents(({ length }) => length === 1)
    expect((await readFeed({ 'If-None-Match': tag })).status).toBe(200)
  })
})

describe('operators', () => {
  test('add an incident of what is not measured, note it and end it, with an audit entry for each', async () => {
    const added = await act('', { part: 'site', note: 'The host of the site is down.', reason: 'called the host' })
    expect(added.body.incident).toMatchObject({ region: null, part: 'site', kind: 'reported', ended_at: null })
    const { id } = added.body.incident
    expect(await listed()).toEqual([id])
    const noted = await act(`/${id}/note`, { note: 'It is back at 15:00.' })
    expect(noted.body.incident).toMatchObject({ id, note: 'It is back at 15:00.' })
    const ended = await act(`/${id}/end`)
    expect(ended.body.incident).toMatchObject({ id, ended_at: expect.stringMatching(/Z$/) })
    const entries = await api.sql`select action, detail - 'incident_id' as detail from audit_entries order by id`
    expect(entries.map(({ action }) => action)).toEqual(['incident_added', 'incident_noted', 'incident_ended'])
    expect(entries[0]?.detail).toEqual({
      region: null,
      part: 'site',
      note: 'The host of the site is down.',
      reason: 'called the host',
    })
  })

  test('add at most one that is open of a part and region', async () => {
    const add = (region?: string) => act('', { part: 'relays', note: 'x', ...(region ? { region } : {}) })
    expect((await Promise.all([add('eu'), add('eu'), add()])).map(({ status }) => status).toSorted()).toEqual([
      200, 200, 409,
    ])
  })

  test.each([
    ['no text', { part: 'api', note: '' }],
    ['an unknown part', { part: 'moon', note: 'x' }],
  ])('are refused for %s', async (_, body) => {
    expect(statusAndCode(await act('', body))).toEqual([400, 'invalid_request'])
    expect(await listed()).toEqual([])
  })

  test('are refused for an unknown region, and begin no incident in the future', async () => {
    const unknown = await act('', { region: 'moon', part: 'relays', note: 'x' })
    expect(statusAndCode(unknown)).toEqual([404, 'not_found'])
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
    const { incident } = (await act('', { part: 'api', note: 'x', began_at: tomorrow })).body
    expect(Date.parse(String(incident.began_at))).toBeLessThan(Date.parse(tomorrow) - 3_600_000)
  })

  test('cannot end what is measured or over, nor note what does not exist', async () => {
    const id = await addMeasured()
    expect(statusAndCode(await act(`/${id}/end`))).toEqual([409, 'invalid_transition'])
    expect(statusAndCode(await act(`/${randomUUID()}/end`))).toEqual([404, 'not_found'])
    expect(statusAndCode(await act(`/${randomUUID()}/note`, { note: 'x' }))).toEqual([404, 'not_found'])
    expect(await api.sql`select from audit_entries`).toHaveLength(0)
  })

  test('alone may write', async () => {
    expect((await api.post('/admin/incidents', { part: 'api', note: 'x' })).status).toBe(401)
    expect(await listed()).toEqual([])
  })
})
