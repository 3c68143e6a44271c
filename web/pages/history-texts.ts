/** Why a relay session ended, and its transitions, in sentences. */
import type { EndedSession, SessionTransition } from '../api-replies.ts'

type End = Pick<EndedSession, 'state' | 'reason' | 'detail' | 'initiator' | 'cause'>

/** Reasons and initiators without a text, from a newer API, are shown by their name. */
export function describeEnd({ state, reason, detail, initiator, cause }: End): string {
  if (state !== 'stopped') return 'It is running.'
  const isLost = cause.reason === 'health_lost'
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
        : (stopTexts[cause.initiator] ?? 'It was stopped.')
    case 'force_disconnected':
      if (isLost && initiator === 'system') return 'We lost contact with it, and it was ended.'
      return disconnectTexts[initiator] ?? 'It was disconnected.'
    default:
      return `It ended: ${reason.replaceAll('_', ' ')}.`
  }
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
  timer: 'It reached the longest duration of a relay.',
  system: 'It was disconnected because your plan or your account changed.',
}

const reasonTexts: Readonly<Record<string, string>> = {
  relay_ready: 'Ready',
  provision_failed: 'Start failed',
  provision_timeout: 'Not ready in time',
  health_lost: 'Contact lost',
  health_restored: 'Contact restored',
  start_requested: 'Kept running',
  stop_requested: 'Stop requested',
  force_disconnected: 'Disconnected',
  grace_elapsed: 'Ended after its grace period',
}

const initiatorTexts: Readonly<Record<string, string>> = {
  user: 'by you',
  operator: 'by support',
  timer: 'by a time limit',
  system: 'by the service',
}

/** `Stop requested by you`, then `Stopped by you`. */
export function describeTransition({ to, reason, initiator }: SessionTransition): string {
  const isEndByStop = to === 'stopped' && reason === 'stop_requested'
  const text = isEndByStop ? 'Stopped' : (reasonTexts[reason] ?? reason.replaceAll('_', ' '))
  // What the relay reports happens by itself.
  return initiator === 'relay' ? text : `${text} ${initiatorTexts[initiator] ?? `by ${initiator}`}`
}

/** The colour of a transition on a time line. */
export function toneOfTransition({ to, reason }: SessionTransition): 'good' | 'warn' | 'bad' | undefined {
  if (to === 'active') return 'good'
  if (reason === 'stop_requested' && to === 'grace') return 'warn'
  return reason === 'stop_requested' || reason === 'grace_elapsed' ? undefined : 'bad'
}
