/** Traces may be turned on while workflows run, so their interceptors replay what workflows did without them. */
import { expect, test } from 'vitest'
import { relaySessionWorkflowId, subscriptionWorkflowId, warmInstancesWorkflowId } from '../../workflows/messages.ts'
import { findReplayFailures, readHistories } from '../support/histories.ts'

test.each([
  ['./', relaySessionWorkflowId],
  ['subscriptions/', subscriptionWorkflowId],
  ['warm-instances/', warmInstancesWorkflowId],
] as const)('the recorded histories in %s replay in the bundle for traces', async (folder, idOf) => {
  const recorded = await readHistories(folder)
  expect(recorded.size).toBeGreaterThan(0)
  expect(await findReplayFailures(recorded, idOf, true)).toEqual([])
})

test('a history fails to replay in the bundle for traces when the workflow schedules another activity', async () => {
  const name = 'started-and-stopped'
  const altered = (await readHistories('./')).get(name)?.replaceAll('destroyInstances', 'anotherActivity') ?? ''
  expect(await findReplayFailures(new Map([[name, altered]]), relaySessionWorkflowId, true)).toEqual([name])
})
