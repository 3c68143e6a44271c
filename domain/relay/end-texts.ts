/** Why a relay ended, in a sentence for its owner: on pages and in notifications. */

interface EndOfRelay {
  readonly reason: string
  readonly initiator: string
  /** The transition into the grace period that preceded the end; null for an end without one. */
  readonly cause: { readonly reason: string; readonly initiator: string } | null
  /** Why a start failed. */
  readonly detail: string | null
}

/** Reasons and initiators without a text, from a newer API, are shown by their name. */
export function describeRelayEnd({ reason, initiator, cause, detail }: EndOfRelay): string {
  const isLost = cause?.reason === 'health_lost'
  if (detail === 'relay_unstable')
    return 'We replaced it three times within an hour, and it failed again. Start a new relay, in another region if you can.'
  if (detail === 'trial_ended')
    return 'The free test time of your account is used up. Choose a plan to start relays again.'
  switch (reason) {
    case 'provision_failed':
      return ['It could not be started.', detail && provisioningTexts[detail]].filter(Boolean).join(' ')
    case 'provision_timeout':
      return 'It did not become ready in time.'
    case 'stop_requested':
      return stopTexts[initiator] ?? 'It was stopped.'
    case 'grace_elapsed':
      return isLost
        ? 'We lost contact with it, and it did not come back.'
        : (stopTexts[cause?.initiator ?? ''] ?? 'It was stopped.')
    case 'force_disconnected':
      if (isLost && initiator === 'system') return 'We lost contact with it, and it was ended.'
      return disconnectTexts[initiator] ?? 'It was disconnected.'
    default:
      return `It ended: ${reason.replaceAll('_', ' ')}.`
  }
}

/** How long a stream was away: `6 s`, or `2 min 5 s`. */
export function formatAway(seconds: number): string {
  const whole = Math.max(1, Math.round(seconds))
  if (whole < 60) return `${whole} s`
  return whole % 60 === 0 ? `${whole / 60} min` : `${Math.floor(whole / 60)} min ${whole % 60} s`
}

const accountText = 'Our team has to fix this. Start a relay in another region meanwhile.'

/** What stood in the way, and what to do next. */
const provisioningTexts: Readonly<Record<string, string>> = {
  capacity:
    'The provider had no free machine in its region. Try again in a few minutes, or start a relay in another region.',
  quota: `The service has reached a limit of its account at the provider. ${accountText}`,
  configuration: `The region is not set up correctly. ${accountText}`,
}

const stopTexts: Readonly<Record<string, string>> = {
  user: 'You stopped it.',
  operator: 'Support stopped it.',
  system: 'It was stopped to make room for a newer relay of yours.',
}

const disconnectTexts: Readonly<Record<string, string>> = {
  user: 'You scheduled the deletion of your account.',
  operator: 'Support disconnected it.',
  timer:
    'It reached the longest duration of a relay, or had run long enough to end when no video came in for ten minutes.',
  system: 'It was disconnected because your plan or your account changed.',
}
