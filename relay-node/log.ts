/**
 * Logs one JSON object per line, in the format of the other processes. Without pino, which would slow down the start.
 */
import { LogDestination } from '../platform/log-destination.ts'

export type Log = (
  level: 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void

const limitedMillis = 10_000

/**
 * A log for what any datagram may cause: each message and `reason` appears at most every 10 s, with the `times` that it
 * was logged since. Reasons must be few, since they are kept.
 */
export function limitLog(log: Log): Log {
  const entries = new Map<string, { loggedAt: number; times: number }>()
  return (level, message, fields) => {
    const key = `${message} ${fields?.reason}`
    const entry = entries.get(key) ?? { loggedAt: Number.NEGATIVE_INFINITY, times: 0 }
    entries.set(key, entry)
    entry.times += 1
    const now = performance.now()
    if (now - entry.loggedAt < limitedMillis) return
    log(level, message, { ...fields, times: entry.times })
    entry.loggedAt = now
    entry.times = 0
  }
}

/** Runs what one datagram causes. A fault of the program in it must not end all streams of the relay. */
export function contain(log: Log, message: string, run: () => void): void {
  try {
    run()
  } catch (error) {
    log('error', message, { error: error instanceof Error ? error.stack : String(error) })
  }
}

/** Writes to standard output. The relay keeps running when the output cannot be written. */
export function createLog(instanceId: string): Log {
  const format: (...entry: Parameters<Log>) => string = (level, msg, fields) => {
    const line = { level, time: new Date().toISOString(), name: 'relay', pid: process.pid, instanceId, ...fields, msg }
    return `${JSON.stringify(line)}\n`
  }
  const destination = new LogDestination(1, (lines) =>
    format('warn', 'log lines were dropped because they could not be written', { lines }),
  )
  return (...entry) => destination.write(format(...entry))
}
