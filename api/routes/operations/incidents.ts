/** Incidents of the service, for everyone. */
import { feedContentType, renderIncidentFeed } from '../../../domain/operations/incident-feed.ts'
import { cacheableReply } from '../../http/cacheable-reply.ts'
import type { OperationExamples } from '../../http/operation-text.ts'
import { IncidentsView } from '../../views/public-incidents.ts'
import { route } from '../route.ts'

const cached = {
  optionalHeaders: { 'If-None-Match': 'The `ETag` of a former reply.' },
  replyHeaders: { 200: ['ETag'], 304: ['ETag'] },
  refuses: [],
} as const

export const incidentExample = {
  id: '5d3f0c62-8a1e-4b7d-9c05-2f6e1a7b4d90',
  region: 'eu-central',
  region_name: 'Frankfurt',
  part: 'starts',
  kind: 'starts_failing',
  title: 'Relay starts failed',
  explanation: 'Most new relays of this region did not become ready. Running relays were not affected.',
  note: 'Our provider had no free machines.',
  began_at: '2026-08-01T18:30:00.000Z',
  ended_at: '2026-08-01T18:55:00.000Z',
  updated_at: '2026-08-01T19:10:00.000Z',
}

const examples: OperationExamples = {
  replies: {
    200: {
      past: {
        summary: 'An incident that is over',
        value: {
          measured_since: '2026-05-01T09:00:00.000Z',
          regions: [{ region: 'eu-central', display_name: 'Frankfurt' }],
          incidents: [incidentExample],
        },
      },
    },
  },
}

export const list = route.none({
  ...cached,
  id: 'listIncidents',
  summary: 'List incidents of the service',
  description:
    'Public. What did not work in the last 90 days, for each region and for the whole service, as far as the service has measured it or its operator added it.',
  answers: { 200: IncidentsView, 304: null },
  examples,
  handle: async ({ header }, { findPublicIncidents }) =>
    cacheableReply(header, {
      contentType: 'application/json; charset=utf-8',
      text: JSON.stringify(await findPublicIncidents()),
    }),
})

export const feed = route.none({
  ...cached,
  id: 'getIncidentFeed',
  summary: 'Subscribe to incidents of the service',
  description: 'The incidents as a feed in the Atom format. The site has it too, as `/incidents.atom`.',
  answers: { 200: 'application/atom+xml', 304: null },
  handle: async ({ header }, { findPublicIncidents, config }) =>
    cacheableReply(header, {
      contentType: feedContentType,
      text: renderIncidentFeed(await findPublicIncidents(), config),
    }),
})
