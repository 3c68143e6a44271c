/** The feed of incidents: valid for feed readers, whatever operators and the configuration have as names and notes. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { renderIncidentFeed } from '../../../domain/operations/incident-feed.ts'
import { childOf, childrenOf, parseXml } from '../../support/xml.ts'

const place = { siteUrl: 'https://relays.example.com', brandName: 'Relays & <Sons>' }
const incident = {
  id: '5d3f0c62-8a1e-4b7d-9c05-2f6e1a7b4d90',
  region_name: 'Frankfurt',
  title: 'Relay starts failed',
  explanation: 'Most new relays did not become ready.',
  note: 'We are on it.',
  began_at: '2026-08-01T18:30:00.000Z',
  ended_at: null,
  updated_at: '2026-08-01T18:40:00.000Z',
}
const measured_since = '2026-05-01T09:00:00.000Z'
const render = (...incidents: Parameters<typeof renderIncidentFeed>[0]['incidents']) =>
  parseXml(renderIncidentFeed({ measured_since, incidents }, place))

test('a feed without incidents has what the format requires', () => {
  const feed = render()
  expect([feed.name, feed.attributes.xmlns]).toEqual(['feed', 'http://www.w3.org/2005/Atom'])
  expect(childOf(feed, 'id').text).toBe('https://relays.example.com/incidents.atom')
  expect(childOf(feed, 'title').text).toBe('Relays & <Sons>: incidents')
  expect(childOf(feed, 'updated').text).toBe(measured_since)
  expect(childOf(childOf(feed, 'author'), 'name').text).toBe(place.brandName)
  expect(childrenOf(feed, 'link').map(({ attributes }) => [attributes.rel, attributes.href])).toEqual([
    ['self', 'https://relays.example.com/incidents.atom'],
    ['alternate', 'https://relays.example.com/status'],
  ])
  expect(childrenOf(feed, 'entry')).toEqual([])
})

test('an entry keeps its id when its incident ends, and says that it is over', () => {
  const ended = { ...incident, ended_at: '2026-08-01T18:55:00.000Z', updated_at: '2026-08-01T18:55:00.000Z' }
  const [before, after] = [render(incident), render(ended)].map((feed) => childOf(feed, 'entry'))
  expect(childOf(before, 'id').text).toBe(`urn:uuid:${incident.id}`)
  expect(childOf(after, 'id').text).toBe(childOf(before, 'id').text)
  expect([before, after].map((entry) => childOf(entry, 'title').text)).toEqual([
    'Frankfurt: Relay starts failed',
    'Over: Frankfurt: Relay starts failed',
  ])
  expect(childOf(before, 'content').text).toBe(
    'Since 2026-08-01 18:30 UTC. Most new relays did not become ready. We are on it.',
  )
  expect(childOf(after, 'content').text).toContain('2026-08-01 18:30 UTC to 2026-08-01 18:55 UTC.')
  expect(childOf(after, 'link').attributes.href).toBe(`https://relays.example.com/status#incident-${incident.id}`)
  expect(childOf(render(ended, incident), 'updated').text).toBe(ended.updated_at)
})

test('any text is shown as it is, without the characters that XML cannot have', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), (note, region_name) => {
      const entry = childOf(render({ ...incident, note: `>${note}<`, region_name }), 'entry')
      const visible = [...note].filter((character) =>
        /[\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/u.test(character),
      )
      expect(childOf(entry, 'content').text).toContain(`>${visible.join('')}<`)
    }),
  )
})
