/** Tasks that repeat: intervals, failures, the stop. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import type { Logger } from '../../platform/log.ts'
import { startPeriodicTask } from '../../platform/periodic-task.ts'
import { atEnd } from '../support/at-end.ts'

const warn = vi.fn()
const log = { warn } as unknown as Logger
const failure = { message: 'a run failed', fields: { job: 'example' } }

function start(everySeconds: number, run: (signal: AbortSignal) => Promise<unknown>) {
  const task = startPeriodicTask({ everySeconds, log, failure, run })
  atEnd(() => task.stop())
  return task
}

test('a periodic task runs at once and again after each interval, and its runs do not overlap', async () => {
  let [running, runningMax, runs] = [0, 0, 0]
  start(0.01, async () => {
    running += 1
    runningMax = Math.max(runningMax, running)
    await sleep(30)
    running -= 1
    runs += 1
  })
  expect(running).toBe(1)
  await vi.waitFor(() => expect(runs).toBeGreaterThan(2))
  expect(runningMax).toBe(1)
})

test('a failed run is logged, and the next one starts', async () => {
  let runs = 0
  const error = new Error('unavailable')
  start(0.01, async () => {
    runs += 1
    if (runs === 1) throw error
  })
  await vi.waitFor(() => expect(runs).toBeGreaterThan(1))
  expect(warn).toHaveBeenCalledExactlyOnceWith({ err: error, job: 'example' }, 'a run failed')
})

test('stopping aborts the signal of the run in progress, waits for its end and starts no other', async () => {
  const steps: string[] = []
  const task = start(0, async (signal) => {
    steps.push('started')
    await sleep(60_000, undefined, { signal }).catch(() => undefined)
    await sleep(20)
    steps.push('ended')
  })
  await task.stop()
  expect(steps).toEqual(['started', 'ended'])
})

test('stopping between two runs does not wait for the interval', async () => {
  let runs = 0
  const task = start(3600, async () => {
    runs += 1
  })
  await vi.waitFor(() => expect(runs).toBe(1))
  // Longer than a test may take, if it waited.
  await task.stop()
  expect(runs).toBe(1)
})
