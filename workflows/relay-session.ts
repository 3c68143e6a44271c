/**
 * The relay session workflow: the life of one relay. Signals, updates and timers only enqueue events. One loop takes
 * the events in order, lets the rules in `domain/` decide, and writes each transition to Postgres before it takes
 * effect.
 */

import {
  ApplicationFailure,
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow'
import type { RelaySessionActivities, StoredSessionState } from '../activities/relay/sessions.ts'
import type { Millis } from '../domain/millis.ts'
import {
  decideTransitions,
  detailOf,
  graceSecondsAfter,
  isAwaitingReplacement,
  isInGraceFor,
  isLegalTransition,
  maxDurationAt,
  type RelaySessionEvent,
  type RelaySessionState,
} from '../domain/relay/session.ts'
import * as messages from './messages.ts'
import { createProvisioning, createReplacing } from './relay-session-provisioning.ts'
import { startTimers } from './relay-session-timers.ts'
import { RelayStateAttribute } from './search-attributes.ts'

const { writeTransitions } = proxyLocalActivities<RelaySessionActivities>({
  startToCloseTimeout: '5s',
  retry: { initialInterval: '100ms', maximumInterval: '5s' },
})

const { destroyInstances } = proxyActivities<RelaySessionActivities>({
  startToCloseTimeout: '2m',
  heartbeatTimeout: '5s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '60s' },
  summary: "destroy the session's instances",
})

export async function relaySession(input: messages.RelaySessionInput): Promise<void> {
  let session = showDetails(input.resumeState ?? initialState(input))
  const inbox: RelaySessionEvent[] = []
  let handledEvents = 0
  const enqueue = (event: RelaySessionEvent) => void inbox.push(event)
  /**
   * Enqueues an event and waits until the loop has handled it. The wait can't be cancelled: Temporal stores the result
   * of an update under its id, so an update that failed by a cancellation would fail at each repetition.
   */
  const handle = (event: RelaySessionEvent): Promise<void> => {
    const position = handledEvents + inbox.push(event)
    return CancellationScope.nonCancellable(() =>
      condition(() => handledEvents >= position || session.state === 'stopped'),
    )
  }

  setHandler(messages.snapshot, () => snapshotOf(session))
  setHandler(messages.ready, () => enqueue({ type: 'ready' }))
  setHandler(messages.healthLost, () => enqueue({ type: 'health_lost' }))
  setHandler(messages.healthRestored, () => enqueue({ type: 'health_restored' }))
  // An error in a handler would fail the task for ever, and an operator may send anything in the Temporal UI.
  setHandler(messages.instanceGone, (gone: Partial<{ instanceId: string }> | null | undefined) => {
    const instanceId = gone?.instanceId
    if (typeof instanceId === 'string') enqueue({ type: 'instance_gone', instanceId })
  })
  setHandler(messages.relayGone, (gone: Partial<{ instanceId: string }> | null | undefined) => {
    const instanceId = gone?.instanceId
    if (typeof instanceId === 'string') enqueue({ type: 'relay_gone', instanceId })
  })
  setHandler(messages.wake, () => enqueue({ type: 'wake', isRequested: true }))
  setHandler(messages.idle, () => enqueue({ type: 'idle' }))
  setHandler(
    messages.command,
    async ({ seq, command, initiator }) => {
      await handle({ type: 'command', seq, command, initiator })
      return snapshotOf(session)
    },
    {
      validator: (request) => {
        if (!messages.isCommandRequest(request)) throw invalidMessage()
      },
    },
  )
  setHandler(
    messages.transition,
    async ({ to, requestId }) => {
      const versionBefore = session.version
      await handle({ type: 'transition', to, requestId })
      if (session.version === versionBefore || session.state !== to) throw invalidTransition(session, to)
      return snapshotOf(session)
    },
    {
      validator: (request) => {
        if (!messages.isTransitionRequest(request)) throw invalidMessage()
        const { to } = request
        if (!isLegalTransition(session.state, to)) throw invalidTransition(session, to)
      },
    },
  )

  const timers = startTimers(session, enqueue)
  const provisioning = createProvisioning({
    sessionId: session.sessionId,
    isNeeded: () => session.state === 'provisioning' && session.instanceId === null,
    lostInstanceId: () => session.lostInstanceId ?? null,
    onFailed: (detail) => handle({ type: 'provision_failed', ...(detail === undefined ? {} : { detail }) }),
    handle,
  })
  const replacing = createReplacing({ session: () => session, handle })
  const provisionIfNeeded = (): void => {
    provisioning.continue()
    replacing.continue()
  }
  if (input.isRestart) enqueue({ type: 'wake' })
  // Waiting in the first task saves the task that a signal would need. The report of a slower instance comes as a
  // signal.
  else if (input.instanceId && input.resumeState === undefined) enqueue({ type: 'report_expected' })
  else provisionIfNeeded()
  // A cancellation, for example in the Temporal UI, ends the session like a disconnect, so its instances are destroyed.
  CancellationScope.current().cancelRequested.catch(() => enqueue({ type: 'cancelled' }))

  await CancellationScope.nonCancellable(async () => {
    const mayContinueAsNew = () =>
      shouldContinueAsNew(input, session, inbox) && !replacing.isRunning() && allHandlersFinished()
    while (session.state !== 'stopped' && !mayContinueAsNew()) {
      await condition(() => inbox.length > 0)
      while (inbox[0] !== undefined && session.state !== 'stopped') {
        const event = inbox[0]
        session = await applyEvent(session, event)
        if (event.type === 'wake' && event.isRequested) replacing.hurry()
        inbox.shift()
        handledEvents += 1
        timers.arm(session)
        provisionIfNeeded()
      }
    }
    if (session.state !== 'stopped')
      return continueAsNew<typeof relaySession>({ ...input, resumeState: session, isRestart: false })

    // The session is stopped for its user now. The provider's clean-up follows and may take longer. Instances are found
    // by the session's tag, which includes one whose creation succeeded but whose reply was lost.
    await provisioning.cancel()
    await replacing.cancel()
    await condition(allHandlersFinished)
    await destroyInstances({ sessionId: session.sessionId })
  })
}

const initialState = ({
  sessionId,
  region,
  settings,
  createdAt,
  instanceId = null,
}: messages.RelaySessionInput): RelaySessionState => ({
  sessionId,
  region,
  settings,
  createdAt,
  state: 'provisioning',
  reason: 'start_requested',
  version: 0,
  commandSeq: 1,
  instanceId,
  deadlineAt: provisioningEndsAt({ settings }),
})

/** A run continues as new when its history is long and neither an event nor a provider call is pending. */
const shouldContinueAsNew = (
  { historyEventsMax }: messages.RelaySessionInput,
  session: RelaySessionState,
  inbox: readonly RelaySessionEvent[],
): boolean =>
  inbox.length === 0 &&
  session.instanceId !== null &&
  (workflowInfo().continueAsNewSuggested ||
    workflowInfo().historyLength > (historyEventsMax ?? Number.POSITIVE_INFINITY))

/** Applies one event and writes its transitions. */
async function applyEvent(session: RelaySessionState, event: RelaySessionEvent): Promise<RelaySessionState> {
  const updated = withEvent(session, event)
  const transitions = decideTransitions(session, event, Date.now())
  if (transitions.length === 0 && event.type !== 'wake') return updated
  const last = transitions.at(-1)
  const request = {
    sessionId: session.sessionId,
    from: session.state,
    region: session.region,
    createdAt: session.createdAt,
    version: session.version,
    commandSeq: updated.commandSeq,
    cause: event.type,
    operatorRequestId: event.type === 'transition' ? event.requestId : null,
    detail: detailOf(event),
    transitions,
    graceSeconds: last === undefined ? null : graceSecondsAfter(session, last),
    settings: session.settings,
    at: Date.now(),
  }
  const summary = [session.state, ...transitions.map(({ to, reason }) => `→ ${to} (${reason})`)].join(' ')
  const outcome = await writeTransitions.executeWithOptions({ summary }, [request])
  switch (outcome.type) {
    case 'stored':
      return publish(adopt(updated, outcome.session))
    case 'newer_command':
      // The API accepted this command, but its update has not arrived. It is carried out before the event.
      return applyEvent(await applyEvent(updated, { type: 'command', ...outcome.command }), event)
    case 'unstable':
      return applyEvent(updated, { type: 'relay_unstable' })
    case 'reporting':
      return applyEvent(updated, { type: session.state === 'provisioning' ? 'ready' : 'health_restored' })
    case 'postponed':
      return publish({ ...updated, deadlineAt: Date.now() + outcome.forMillis })
    case 'not_reported':
    case 'withdrawn':
      return updated
  }
}

/** What an event changes without a transition. */
function withEvent(session: RelaySessionState, event: RelaySessionEvent): RelaySessionState {
  if (event.type === 'command') return { ...session, commandSeq: Math.max(session.commandSeq, event.seq) }
  if (event.type === 'bound') return showDetails({ ...session, instanceId: event.instanceId })
  if (event.type === 'replacement_created' && isAwaitingReplacement(session))
    return { ...session, replacementId: event.instanceId }
  if (event.type === 'instance_gone' && isAwaitingReplacement(session) && session.replacementId === event.instanceId)
    return { ...session, replacementId: null, lostInstanceId: event.instanceId }
  // An instance that is lost before its first report is created again.
  if (event.type === 'instance_gone' && session.state === 'provisioning' && session.instanceId === event.instanceId)
    return { ...session, instanceId: null, lostInstanceId: event.instanceId }
  return session
}

/** Adopts the stored state. Postgres answers with durations; timers run by Temporal's clock. */
function adopt(
  session: RelaySessionState,
  { endsInMillis, trialEndsInMillis, commandSeq, ...stored }: StoredSessionState,
): RelaySessionState {
  const ownDeadlineAt = stored.state === 'provisioning' ? (session.deadlineAt ?? provisioningEndsAt(session)) : null
  const isReplacing = isInGraceFor(session, 'health_lost') && isInGraceFor(stored, 'health_lost')
  return {
    ...session,
    ...stored,
    // What was to take over in a grace is of no use after it.
    ...(isReplacing || session.replacementId === undefined ? {} : { replacementId: null, lostInstanceId: null }),
    commandSeq: Math.max(session.commandSeq, commandSeq),
    deadlineAt: endsInMillis === null ? ownDeadlineAt : Date.now() + endsInMillis,
    ...(trialEndsInMillis === undefined
      ? {}
      : { trialEndsAt: trialEndsInMillis === null ? null : Date.now() + trialEndsInMillis }),
  }
}

const provisioningEndsAt = ({ settings }: Pick<RelaySessionState, 'settings'>): Millis =>
  Date.now() + settings.provisionTimeoutSeconds * 1000

/** Makes a written state visible to searches and in the Temporal UI. */
function publish(session: RelaySessionState): RelaySessionState {
  upsertSearchAttributes([{ key: RelayStateAttribute, value: session.state }])
  return showDetails(session)
}

/** Shows the state in the Temporal UI. The details are no event of the history. */
function showDetails(session: RelaySessionState): RelaySessionState {
  const until = session.deadlineAt === null ? '' : `, until ${new Date(session.deadlineAt).toISOString()}`
  setCurrentDetails(
    `**${session.state}** (${session.reason})${until} · instance \`${session.instanceId ?? 'none'}\` · ${session.version} transitions`,
  )
  return session
}

const snapshotOf = (session: RelaySessionState): messages.RelaySessionSnapshot => ({
  sessionId: session.sessionId,
  state: session.state,
  reason: session.reason,
  version: session.version,
  region: session.region,
  instanceId: session.instanceId,
  commandSeq: session.commandSeq,
  deadlineAt: session.deadlineAt,
  maxDurationAt: maxDurationAt(session),
})

const invalidMessage = () =>
  ApplicationFailure.nonRetryable(
    'the message has not the fields that workflows/messages.ts describes',
    'invalid_message',
  )

const invalidTransition = ({ state }: RelaySessionState, to: string) =>
  ApplicationFailure.nonRetryable(`${state} → ${to} is not a legal transition`, 'invalid_transition')
