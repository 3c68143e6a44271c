/** What plans and add-ons include, as text, from the configuration. */
import { addonsMax, relayLimit } from '../domain/billing/plans.ts'
import type { RelayTimeTerms } from '../platform/config/site.ts'

/** The relays of the paid plan without add-ons. */
export const planRelays = relayLimit({ planTier: 'paid', addons: 0 })
/** The relays of the paid plan with all add-ons. */
export const relaysMax = relayLimit({ planTier: 'paid', addons: addonsMax })

/** `1 managed relay`, `3 managed relays`. */
export const formatRelays = (count: number): string => `${count} managed ${count === 1 ? 'relay' : 'relays'}`

/** `400 hours of relay time a month` for two relays of 200 hours. */
export const formatRelayTime = (relays: number, { hoursPerRelay }: RelayTimeTerms): string =>
  hoursPerRelay === 0
    ? 'relay time without a limit'
    : `${new Intl.NumberFormat('en-US').format(relays * hoursPerRelay)} ${relays * hoursPerRelay === 1 ? 'hour' : 'hours'} of relay time a month`

/** What happens when the included time is used up. Null where relay time has no limit. */
export function describeLimit({ hoursPerRelay, enforcement }: RelayTimeTerms): string | null {
  if (hoursPerRelay === 0) return null
  return enforcement === 'enforce'
    ? 'When it is used up, running relays continue, and new ones start again in the next cycle.'
    : 'When it is used up, your relays keep working.'
}
