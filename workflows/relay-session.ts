/**
 * The relay session actor: one relay's life. Handlers and timers only put events into its inbox; one loop takes them in
 * order, decides by the pure rules, and writes each move to Postgres before it is true for anybody.
 */
import { defineSearchAttributeKey } from '@temporalio/common'
import {
  ApplicationFailure,
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow'
import type { MovedRow, RelaySessionActivities } from '../activities/relay-sessions.ts'
import * as messages from './messages.ts'
import { createProvisioning } from './relay-session-provisioning.ts'
import {
  decide,
  type Event,
  isLegal,
  lastsSeconds,
  latestEndAt,
  longestAt,
  type Millis,
  type Session,
} from './relay-session-state.ts'

const RelayState = defineSearchAttributeKey('RelayState', 'KEYWORD')

const { moveSession } = proxyLocalActivities<RelaySessionActivities>({
  startToCloseTimeout: '5s',
  retry: { initialInterval: '100ms', maximumInterval: '5s' },
})

const { destroyInstances } = proxyActivities<RelaySessionActivities>({
  startToCloseTimeout: '2m',
  heartbeatTimeout: '30s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '60s' },
  summary: 'destroy what the session has at the provider',
})

export async function relaySession(input: messages.RelaySessionInput): Promise<void> {
  let session = input.carried ?? beginning(input)
  const inbox: Event[] = []
  let handled = 0
  const tell = (event: Event) => void inbox.push(event)
  /**
   * Waits until the loop has taken the event out of the inbox and dealt with it. Not to be cancelled: the result of an
   * update is kept by its id, and one that failed by a cancellation would fail at each repetition.
   */
  const settle = (event: Event): Promise<void> => {
    const place = handled + inbox.push(event)
    return CancellationScope.nonCancellable(() => condition(() => handled >= place || session.state === 'stopped'))
  }

  setHandler(messages.snapshot, () => snapshotOf(session))
  setHandler(messages.ready, () => tell({ type: 'ready' }))
  setHandler(messages.healthLost, () => tell({ type: 'health_lost' }))
  setHandler(messages.healthRestored, () => tell({ type: 'health_restored' }))
  setHandler(messages.instanceGone, ({ instanceId }) => tell({ type: 'instance_gone', instanceId }))
  setHandler(messages.wake, () => tell({ type: 'wake' }))
  setHandler(messages.idle, () => tell({ type: 'idle' }))
  setHandler(messages.command, async (request) => {
    await settle({ type: 'command', ...request })
    return snapshotOf(session)
  })
  setHandler(
    messages.transition,
    async ({ to, requestId }) => {
      const before = session.version
      await settle({ type: 'transition', to, requestId })
      if (session.version === before || session.state !== to) throw invalidTransition(session, to)
      return snapshotOf(session)
    },
    {
      validator: ({ to }) => {
        if (!isLegal(session.state, to)) throw invalidTransition(session, to)
      },
    },
  )

  const timers = startTimers(session, tell)
  const provisioning = new CancellationScope()
  const needsInstance = () => session.state === 'provisioning' && session.instanceId === null
  const provision = createProvisioning({ sessionId: session.sessionId, isNeeded: needsInstance, settle })
  let provisioned: Promise<void> | undefined
  const provisionIfNeeded = (): void => {
    if (!needsInstance() || provisioned !== undefined) return
    provisioned = provisioning.run(provision).then(() => {
      provisioned = undefined
      provisionIfNeeded()
    })
  }
  if (input.isRestart) tell({ type: 'wake' })
  else provisionIfNeeded()
  // Cancelling it in the Temporal UI is one more way to ask for its end: the clean-up is never skipped.
  CancellationScope.current().cancelRequested.catch(() => tell({ type: 'cancelled' }))

  await CancellationScope.nonCancellable(async () => {
    while (session.state !== 'stopped' && !(mayHandOn(input, session, inbox) && allHandlersFinished())) {
      await condition(() => inbox.length > 0)
      while (inbox[0] !== undefined && session.state !== 'stopped') {
        session = await step(session, inbox[0])
        inbox.shift()
        handled += 1
        timers.arm(session)
        provisionIfNeeded()
      }
    }
    if (session.state !== 'stopped')
      return continueAsNew<typeof relaySession>({ ...input, carried: session, isRestart: false })

    // Stopped is true for everybody now; what is left at the provider goes behind their back. The undo is by the session's
    // tag and so also finds what a create made and lost the reply of.
    provisioning.cancel()
    await provisioned
    await condition(allHandlersFinished)
    await destroyInstances({ sessionId: session.sessionId })
  })
}

const beginning = ({ sessionId, region, settings, createdAt }: messages.RelaySessionInput): Session => ({
  sessionId,
  region,
  settings,
  createdAt,
  state: 'provisioning',
  reason: 'start_requested',
  version: 0,
  commandSeq: 1,
  instanceId: null,
  deadlineAt: provisioningEndsAt({ settings }),
})

/** A run hands on when its history grows long, at a moment when nothing is under way. */
const mayHandOn = (
  { historyEventsMax }: messages.RelaySessionInput,
  session: Session,
  inbox: readonly Event[],
): boolean =>
  inbox.length === 0 &&
  session.instanceId !== null &&
  (workflowInfo().continueAsNewSuggested ||
    workflowInfo().historyLength > (historyEventsMax ?? Number.POSITIVE_INFINITY))

/** Deals with one event: the session afterwards, which is the same one when the event changes nothing. */
async function step(session: Session, event: Event): Promise<Session> {
  const noted = note(session, event)
  const wanted = decide(session, event, Date.now())
  if (wanted.length === 0 && event.type !== 'wake') return noted
  const last = wanted.at(-1)
  const request = {
    sessionId: session.sessionId,
    from: session.state,
    region: session.region,
    createdAt: session.createdAt,
    version: session.version,
    commandSeq: noted.commandSeq,
    cause: event.type,
    operatorRequestId: event.type === 'transition' ? event.requestId : null,
    moves: wanted,
    lastsSeconds: last === undefined ? null : lastsSeconds(session, last),
    settings: session.settings,
    at: Date.now(),
  }
  const summary = [session.state, ...wanted.map((move) => `→ ${move.to} (${move.reason})`)].join(' ')
  const outcome = await moveSession.executeWithOptions({ summary }, [request])
  switch (outcome.type) {
    case 'row':
      return show(takeOver(noted, outcome.row))
    case 'newer_command':
      // Accepted by the api, but not here yet: what was accepted is obeyed first, then the event is looked at again.
      return step(await step(noted, { type: 'command', ...outcome.command }), event)
    case 'reporting':
      return step(noted, { type: session.state === 'provisioning' ? 'ready' : 'health_restored' })
    case 'postponed':
      return show({ ...noted, deadlineAt: Date.now() + outcome.forMillis })
    case 'withdrawn':
      return noted
  }
}

function note(session: Session, event: Event): Session {
  if (event.type === 'command') return { ...session, commandSeq: Math.max(session.commandSeq, event.seq) }
  if (event.type === 'bound') return { ...session, instanceId: event.instanceId }
  // One that is gone before it reported is created again.
  if (event.type === 'instance_gone' && session.state === 'provisioning' && session.instanceId === event.instanceId)
    return { ...session, instanceId: null }
  return session
}

/** The session with what its row says. Durations of Postgres become times of Temporal's clock, which the timers run by. */
function takeOver(session: Session, { endsInMillis, commandSeq, ...row }: MovedRow): Session {
  const ownDeadlineAt = row.state === 'provisioning' ? (session.deadlineAt ?? provisioningEndsAt(session)) : null
  return {
    ...session,
    ...row,
    commandSeq: Math.max(session.commandSeq, commandSeq),
    deadlineAt: endsInMillis === null ? ownDeadlineAt : Date.now() + endsInMillis,
  }
}

const provisioningEndsAt = ({ settings }: Pick<Session, 'settings'>): Millis =>
  Date.now() + settings.provisionTimeoutSeconds * 1000

/** Makes a move readable in the Temporal UI. */
function show(session: Session): Session {
  upsertSearchAttributes([{ key: RelayState, value: session.state }])
  const until = session.deadlineAt === null ? '' : `, until ${new Date(session.deadlineAt).toISOString()}`
  setCurrentDetails(
    `**${session.state}** (${session.reason})${until} · instance \`${session.instanceId ?? 'none'}\` · ${session.version} moves`,
  )
  return session
}

/** One timer for the present deadline, one for the longest duration. Each is named for the operator who sees it. */
function startTimers(begun: Session, tell: (event: Event) => void) {
  let armedFor: Millis | null = null
  let armed: CancellationScope | undefined

  const arm = ({ state, reason, deadlineAt }: Session) => {
    if (deadlineAt === armedFor) return
    armed?.cancel()
    armedFor = deadlineAt
    if (deadlineAt === null) return
    armed = new CancellationScope()
    wake(armed, deadlineAt, state === 'provisioning' ? 'provisioning deadline' : `grace after ${reason} ends`, () => {
      armedFor = null
      tell({ type: 'deadline' })
    })
  }

  arm(begun)
  wake(new CancellationScope(), latestEndAt(begun), 'longest duration', () => tell({ type: 'longest' }))
  return { arm }
}

function wake(scope: CancellationScope, at: Millis, summary: string, then: () => void): void {
  scope
    .run(async () => {
      await sleep(Math.max(1, at - Date.now()), { summary })
      then()
    })
    .catch((error: unknown) => {
      if (!isCancellation(error)) throw error
    })
}

const snapshotOf = (session: Session): messages.RelaySessionSnapshot => ({
  sessionId: session.sessionId,
  state: session.state,
  reason: session.reason,
  version: session.version,
  region: session.region,
  instanceId: session.instanceId,
  commandSeq: session.commandSeq,
  deadlineAt: session.deadlineAt,
  longestAt: longestAt(session),
})

const invalidTransition = ({ state }: Session, to: string) =>
  ApplicationFailure.nonRetryable(`${state} → ${to} is not among the five moves`, 'invalid_transition')
