/** Recorded histories of subscriptions, which replay against the present code. */
import { describe, expect, test } from 'vitest'
import { subscriptionWorkflowId } from '../../workflows/messages.ts'
import { findReplayFailures, readHistories } from '../support/histories.ts'

const recorded = await readHistories('subscriptions/')

describe('recorded histories of subscription workflows', () => {
  test('cover each course that a subscription can take', () => {
    expect([...recorded.keys()]).toEqual([
      'activated',
      'cancelled',
      'continued-as-new',
      'failed-and-downgraded',
      'fewer-addons',
      'grant-ended',
      'recovered',
    ])
  })

  test('replay against the current code', async () => {
    expect(await findReplayFailures(recorded, subscriptionWorkflowId)).toEqual([])
  })

  test('fail to replay when the workflow schedules another activity', async () => {
    const name = 'failed-and-downgraded'
    const altered = recorded.get(name)?.replaceAll('endRelays', 'anotherActivity') ?? ''
    expect(await findReplayFailures(new Map([[name, altered]]), subscriptionWorkflowId)).toEqual([name])
  })
})
