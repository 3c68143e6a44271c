/** Logs one JSON object per line, in the format of the other processes. Without pino, which would slow down the start. */
import { LogDestination } from '../platform/log-destination.ts'

export type Log = (
  level: 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void

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
