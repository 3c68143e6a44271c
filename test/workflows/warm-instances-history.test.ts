/** Recorded histories of warm instances, which replay against the present code. */
import { expect, test } from 'vitest'
import { warmInstancesWorkflowId } from '../../workflows/messages.ts'
import { findReplayFailures, readHistories } from '../support/histories.ts'

const recorded = await readHistories('warm-instances/')

test('recorded histories of warm instances replay against the current code', async () => {
  expect([...recorded.keys()]).toEqual(['drained', 'provider-failed', 'refilled'])
  expect(await findReplayFailures(recorded, warmInstancesWorkflowId)).toEqual([])
})

test('a history fails to replay when the workflow schedules another activity', async () => {
  const altered = recorded.get('refilled')?.replaceAll('createWarmInstance', 'anotherActivity') ?? ''
  expect(await findReplayFailures(new Map([['refilled', altered]]), warmInstancesWorkflowId)).toEqual(['refilled'])
})
