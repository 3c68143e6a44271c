/** What the status page and its feed say about incidents. */
import type { IncidentKind, IncidentPart, IncidentSubject } from './incidents.ts'

export const partNames = {
  api: 'API',
  site: 'Site',
  sign_in: 'Sign-in',
  billing: 'Payments',
  control: 'Relay control',
  relays: 'Relays',
  starts: 'Relay starts',
} as const satisfies Readonly<Record<IncidentPart, string>>

interface IncidentText {
  readonly title: string
  readonly explanation: string
}

const outages: Readonly<Record<IncidentPart, IncidentText>> = {
  api: {
    title: 'The API did not respond',
    explanation: 'Signing in and starting or stopping relays was not possible. Running relays kept forwarding video.',
  },
  site: { title: 'The site did not respond', explanation: 'Plugins and relays were not affected.' },
  sign_in: {
    title: 'Mails were delayed',
    explanation: 'Links to confirm an address or to reset a password arrived late. Other sign-ins worked.',
  },
  billing: {
    title: 'Payments were applied late',
    explanation: 'What was bought or changed took longer to take effect.',
  },
  control: {
    title: 'Relays could not be controlled',
    explanation: 'Relays could not be started, stopped or replaced. Running relays kept forwarding video.',
  },
  relays: {
    title: 'Relays lost contact or failed',
    explanation: 'Many relays of this region stopped reporting or had to be replaced.',
  },
  starts: { title: 'Relays could not be started', explanation: 'New relays of this region did not become ready.' },
}

const others: Readonly<Record<Exclude<IncidentKind, 'part_outage'>, IncidentText>> = {
  starts_failing: {
    title: 'Relay starts failed',
    explanation: 'Most new relays of this region did not become ready. Running relays were not affected.',
  },
  region_closed: {
    title: 'No new relays',
    explanation: 'This region took no new relays. Running relays were not affected.',
  },
  reported: { title: 'Reported by the operator', explanation: '' },
}

/** The explanation is empty where the operator's note is all there is to say. */
export function incidentText({ part, kind }: Pick<IncidentSubject, 'part' | 'kind'>): IncidentText {
  if (kind === 'part_outage') return outages[part]
  return kind === 'reported' ? { ...others.reported, title: `${partNames[part]}: disturbed` } : others[kind]
}
