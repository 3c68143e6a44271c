/**
 * The warm instances of one region: keeps as many ready as configured. The rows in Postgres are its state. It is woken
 * when they need work, so a region in which nothing happens adds nothing to its history.
 */
import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'
import type { WarmInstanceActivities, WarmWork } from '../activities/fleet/warm-instances.ts'
import * as messages from './messages.ts'

const { planWarmInstances } = proxyLocalActivities<WarmInstanceActivities>({
  startToCloseTimeout: '10s',
  retry: { initialInterval: '500ms', maximumInterval: '10s' },
})

/** The failures of the provider are not retried: a pause follows, and then another instance. */
const { createWarmInstance } = proxyActivities<WarmInstanceActivities>({
  startToCloseTimeout: '5m',
  heartbeatTimeout: '5s',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '30s' },
  summary: 'create a warm instance',
})

const { destroyWarmInstance } = proxyActivities<WarmInstanceActivities>({
  startToCloseTimeout: '2m',
  heartbeatTimeout: '5s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '60s' },
  summary: 'destroy a warm instance',
})

const pauseMillisMin = 5_000
const pauseMillisMax = 600_000

export async function warmInstances(input: messages.WarmInstancesInput): Promise<void> {
  const { region } = input
  const creating = new Set<string>()
  const destroying = new Set<string>()
  let isWoken = true
  let unbound = 0
  let failures = input.failures ?? 0
  let lastFailureAt = 0
  let pausedUntil = failures === 0 ? 0 : Date.now() + pauseMillisAfter(failures)

  setHandler(messages.wakeWarmInstances, () => {
    isWoken = true
  })
  setHandler(messages.warmInstancesSnapshot, () => ({
    region,
    unbound,
    creating: [...creating],
    destroying: [...destroying],
    failures,
    pausedUntil: pausedUntil > Date.now() ? pausedUntil : null,
  }))

  const create = async (instanceId: string): Promise<void> => {
    const startedAt = Date.now()
    creating.add(instanceId)
    try {
      await createWarmInstance({ instanceId })
      failures = 0
    } catch (error) {
      if (isCancellation(error)) throw error
      // Creations that began before the last failure most likely have the same cause, and count as one failure
      // together.
      failures = startedAt >= lastFailureAt ? failures + 1 : Math.max(1, failures)
      lastFailureAt = Date.now()
      pausedUntil = lastFailureAt + pauseMillisAfter(failures)
      // Its creation may have succeeded all the same.
      await destroy(instanceId)
    } finally {
      creating.delete(instanceId)
      isWoken = true
    }
  }
  const destroy = async (instanceId: string): Promise<void> => {
    destroying.add(instanceId)
    try {
      await destroyWarmInstance({ instanceId })
    } finally {
      destroying.delete(instanceId)
      isWoken = true
    }
  }
  const execute = (work: WarmWork): void => {
    for (const instanceId of work.create.filter((id) => !creating.has(id) && !destroying.has(id)))
      runInBackground(() => create(instanceId))
    for (const instanceId of work.destroy.filter((id) => !destroying.has(id) && !creating.has(id)))
      runInBackground(() => destroy(instanceId))
  }

  for (;;) {
    await condition(() => isWoken)
    isWoken = false
    const mayCreate = Date.now() >= pausedUntil
    const work = await planWarmInstances.executeWithOptions({ summary: 'plan' }, [{ region, mayCreate }])
    unbound = work.unbound
    execute(work)
    setCurrentDetails(
      `${unbound} unbound · ${creating.size} starting · ${destroying.size} ending · ${failures} failures`,
    )
    if (creating.size + destroying.size > 0 || !allHandlersFinished()) continue
    if (isTooLong(input)) return continueAsNew<typeof warmInstances>({ ...input, failures })
    // The job that wakes the workflow starts it again when the region needs one.
    if (unbound === 0 && mayCreate && !isWoken) return
  }
}

const pauseMillisAfter = (failures: number): number =>
  Math.min(pauseMillisMax, pauseMillisMin * 2 ** Math.min(failures - 1, 10))

const isTooLong = ({ historyEventsMax }: messages.WarmInstancesInput): boolean =>
  workflowInfo().continueAsNewSuggested || workflowInfo().historyLength > (historyEventsMax ?? Number.POSITIVE_INFINITY)

/** A cancellation of the workflow ends the call; the next run takes it up again. */
function runInBackground(call: () => Promise<void>): void {
  CancellationScope.cancellable(call).catch((error: unknown) => {
    if (!isCancellation(error)) throw error
  })
}
