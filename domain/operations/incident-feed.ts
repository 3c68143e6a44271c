/** The feed of incidents, in the Atom format (RFC 4287). */

export const feedContentType = 'application/atom+xml; charset=utf-8'
/** On the site, which is public also where the API is not. */
export const feedPath = '/incidents.atom'

interface FeedIncident {
  readonly id: string
  /** Null for the whole service. */
  readonly region_name: string | null
  readonly title: string
  readonly explanation: string
  readonly note: string | null
  /** RFC 3339, as all times. */
  readonly began_at: string
  readonly ended_at: string | null
  readonly updated_at: string
}

interface Feed {
  readonly measured_since: string
  /** Newest first. */
  readonly incidents: readonly FeedIncident[]
}

interface Place {
  /** Without a slash at its end. */
  readonly siteUrl: string
  readonly brandName: string
}

/** More would make each request of a feed reader long. The status page has the others. */
const entriesMax = 100

export function renderIncidentFeed({ measured_since, incidents }: Feed, { siteUrl, brandName }: Place): string {
  const updated = incidents.reduce(
    (latest, { updated_at }) => (updated_at > latest ? updated_at : latest),
    measured_since,
  )
  return [
    '<?xml version="1.0" encoding="utf-8"?>',
    '<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en">',
    `<title>${escapeXml(`${brandName}: incidents`)}</title>`,
    `<id>${escapeXml(siteUrl + feedPath)}</id>`,
    `<link rel="self" type="application/atom+xml" href="${escapeXml(siteUrl + feedPath)}"/>`,
    `<link rel="alternate" type="text/html" href="${escapeXml(siteUrl)}/status"/>`,
    `<updated>${updated}</updated>`,
    `<author><name>${escapeXml(brandName)}</name></author>`,
    ...incidents.slice(0, entriesMax).map((incident) => renderEntry(incident, siteUrl)),
    '</feed>',
    '',
  ].join('\n')
}

function renderEntry(incident: FeedIncident, siteUrl: string): string {
  const { id, region_name: region, title, explanation, note, began_at, ended_at, updated_at } = incident
  const period =
    ended_at === null ? `Since ${shortTime(began_at)}.` : `${shortTime(began_at)} to ${shortTime(ended_at)}.`
  const state = ended_at === null ? '' : 'Over: '
  return [
    '<entry>',
    `<id>urn:uuid:${escapeXml(id)}</id>`,
    `<title>${escapeXml(`${state}${region === null ? '' : `${region}: `}${title}`)}</title>`,
    `<link rel="alternate" type="text/html" href="${escapeXml(`${siteUrl}/status#incident-${id}`)}"/>`,
    `<published>${began_at}</published>`,
    `<updated>${updated_at}</updated>`,
    `<content type="text">${escapeXml([period, explanation, note ?? ''].filter((text) => text !== '').join(' '))}</content>`,
    '</entry>',
  ].join('\n')
}

/** `2026-11-22 14:05 UTC` */
const shortTime = (timestamp: string): string => `${timestamp.slice(0, 10)} ${timestamp.slice(11, 16)} UTC`

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Without the characters that XML cannot have. */
const escapeXml = (text: string): string =>
  text
    .replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '')
    .replace(/[&<>"']/g, (character) => entities[character] ?? '')
