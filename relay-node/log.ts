/** One JSON object a line, in the shape of the other processes' logs, without the time that their logger takes to load. */
import { LogDestination } from '../platform/log-destination.ts'

export type Log = (level: 'info' | 'warn' | 'error', message: string, facts?: Readonly<Record<string, unknown>>) => void

/** Writes to standard output; its reader may go away or its disk fill up at any time, and the relay goes on. */
export function createLog(instanceId: string): Log {
  const lineOf: (...entry: Parameters<Log>) => string = (level, msg, facts) => {
    const line = { level, time: new Date().toISOString(), name: 'relay', pid: process.pid, instanceId, ...facts, msg }
    return `${JSON.stringify(line)}\n`
  }
  const destination = new LogDestination(1, (lines) =>
    lineOf('warn', 'log lines were dropped because they could not be written', { lines }),
  )
  return (...entry) => destination.write(lineOf(...entry))
}
