/** The order of starts and command deliveries: requests first, deliveries in the background. */
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import { createDeliveries, type Deliveries } from '../../api/deliveries.ts'
import { connectPostgres } from '../../db/connection.ts'
import { createLog } from '../../platform/log.ts'
import type { RelaySessionAddress, RelaySessionWorkflows } from '../../workflows/relay-session-client.ts'

const session = { id: '00000000-0000-4000-8000-000000000000' } as RelaySessionAddress

/** In the order in which they happened. */
let happened: string[]
let deliveries: Deliveries
beforeEach(() => {
  happened = []
  // Without a running workflow nothing is written.
  const deliver = async () => {
    happened.push('delivered')
    return false
  }
  deliveries = createDeliveries({
    sql: connectPostgres('postgres://127.0.0.1:1/none', 1),
    relaySessions: { deliver } as Partial<RelaySessionWorkflows> as RelaySessionWorkflows,
    log: createLog('test', 'silent'),
  })
})

/** Begins as many starts. @returns a function that ends the first one that has not ended. */
function beginStarts(count: number): () => Promise<void> {
  const starts = Array.from({ length: count }, () => {
    let end = () => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    return { end, done: deliveries.runStart(() => ended) }
  })
  return async () => {
    const first = starts.shift()
    first?.end()
    await first?.done
  }
}

describe('a delivery in the background', () => {
  test('waits until fewer than four starts are in progress', async () => {
    const endStart = beginStarts(4)
    deliveries.send(session)
    await sleep(50)
    happened.push('a start ended')
    await endStart()
    await deliveries.drain()
    expect(happened).toEqual(['a start ended', 'delivered'])
  })

  test('does not wait for three starts', async () => {
    beginStarts(3)
    deliveries.send(session)
    await deliveries.drain()
    expect(happened).toEqual(['delivered'])
  })

  test('does not wait for starts that never end', async () => {
    beginStarts(4)
    deliveries.send(session)
    await deliveries.drain()
    expect(happened).toEqual(['delivered'])
  })

  test('that a request waits for does not wait for starts', async () => {
    beginStarts(4)
    await deliveries.sendAndWait(session, 60_000)
    expect(happened).toEqual(['delivered'])
  })
})
