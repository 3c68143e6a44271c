/** Metrics of the worker's process, beside those of the Temporal SDK and under the names that the api uses. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { MetricMeter } from '@temporalio/common'
import type { Logger } from '../../platform/log.ts'
import { type PeriodicTask, startPeriodicTask } from '../../platform/periodic-task.ts'

const everySeconds = 5

/** Measures until stopped. */
export function startProcessMetrics(meter: MetricMeter, log: Logger): PeriodicTask {
  const gauge = (name: string, description: string) => meter.createGauge(name, 'float', undefined, description)
  const memory = gauge('process_resident_memory_bytes', 'Resident memory of the process.')
  const heap = gauge('nodejs_heap_size_used_bytes', 'Used heap of the process.')
  const lag = gauge(
    'nodejs_eventloop_lag_p99_seconds',
    'Longest of 99 % of the delays of the event loop in the last seconds.',
  )
  // Whole seconds, since counters of the SDK take integers. The rest is counted the next time.
  const cpu = meter.createCounter('process_cpu_seconds', undefined, 'CPU time of the process.')
  let countedCpuSeconds = 0
  const delays = monitorEventLoopDelay({ resolution: 20 })
  delays.enable()
  const measure = async () => {
    const { rss, heapUsed } = process.memoryUsage()
    memory.set(rss)
    heap.set(heapUsed)
    lag.set(delays.percentile(99) / 1e9)
    delays.reset()
    const { user, system } = process.cpuUsage()
    const wholeSeconds = Math.floor((user + system) / 1e6)
    cpu.add(wholeSeconds - countedCpuSeconds)
    countedCpuSeconds = wholeSeconds
  }
  const task = startPeriodicTask({
    everySeconds,
    log,
    failure: { message: 'the metrics of the process could not be measured' },
    run: measure,
  })
  return {
    stop: async () => {
      delays.disable()
      await task.stop()
    },
  }
}
