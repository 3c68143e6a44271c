/**
 * Structured logs, one JSON object per line. Values with the name of a secret are redacted, down to the third level.
 */
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'
import { LogDestination } from './log-destination.ts'

export type { Logger } from 'pino'

const secretNames = [
  'authorization',
  'cookie',
  'set-cookie',
  'password',
  'token',
  'poll_token',
  'merge_token',
  'binding',
  'access_token',
  'id_token',
  'client_secret',
  'code_verifier',
  'refresh_token',
  'cp_access_jwt',
  'pair_token',
  'relay_ws_token',
  'stream_token',
  'x-relay-auth',
  'x-pair-token',
]

const redact = {
  paths: secretNames.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]),
  censor: '[redacted]',
}

const standardOutput = (name: string): DestinationStream =>
  new LogDestination(1, (lines) => {
    const time = new Date().toISOString()
    return `${JSON.stringify({ level: 'warn', time, name, pid: process.pid, lines, msg: droppedMessage })}\n`
  })

const droppedMessage = 'log lines were dropped because they could not be written'

/** @param name the program: `api`, `worker`, `migrate`. @param destination standard output by default. */
export const createLog = (name: string, level: string, destination?: DestinationStream): Logger =>
  pino(
    {
      name,
      level,
      redact,
      base: { name, pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination ?? standardOutput(name),
  )
