/** Why a relay session ended, and its transitions, in sentences. */
import { describeRelayEnd } from '../../domain/relay/end-texts.ts'
import type { EndedSession, SessionTransition } from '../api-replies.ts'

type End = Pick<EndedSession, 'state' | 'reason' | 'detail' | 'initiator' | 'cause'>

export const describeEnd = (session: End): string =>
  session.state === 'stopped' ? describeRelayEnd(session) : 'It is running.'

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

type Described = Pick<SessionTransition, 'to' | 'reason' | 'initiator'>

/** `Stop requested by you`, then `Stopped by you`. */
export function describeTransition({ to, reason, initiator }: Described): string {
  const isEndByStop = to === 'stopped' && reason === 'stop_requested'
  const text = isEndByStop ? 'Stopped' : (reasonTexts[reason] ?? reason.replaceAll('_', ' '))
  // What the relay reports happens by itself.
  return initiator === 'relay' ? text : `${text} ${initiatorTexts[initiator] ?? `by ${initiator}`}`
}

/** The colour of a transition on a time line. */
export function toneOfTransition({ to, reason }: Omit<Described, 'initiator'>): 'good' | 'warn' | 'bad' | undefined {
  if (to === 'active') return 'good'
  if (reason === 'stop_requested' && to === 'grace') return 'warn'
  return reason === 'stop_requested' || reason === 'grace_elapsed' ? undefined : 'bad'
}
