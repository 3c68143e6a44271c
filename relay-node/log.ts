/** One JSON object a line, in the shape of the other processes' logs, without the time that their logger takes to load. */

export type Log = (level: 'info' | 'warn' | 'error', message: string, facts?: Readonly<Record<string, unknown>>) => void

/** Writes to standard output; whoever reads it may go away at any time, and the relay goes on. */
export function createLog(instanceId: string): Log {
  process.stdout.on('error', () => {})
  return (level, msg, facts) => {
    const line = { level, time: new Date().toISOString(), name: 'relay', pid: process.pid, instanceId, ...facts, msg }
    process.stdout.write(`${JSON.stringify(line)}\n`)
  }
}
