/**
 * The video path of a relay without its reports, with the stage or without it (`on`, `off`). Prints its ports as JSON.
 */
import { randomUUID } from 'node:crypto'
import { readStackConfig } from '../platform/config/stack.ts'
import { admitPlainToken } from '../relay-node/admission.ts'
import { startDataPlane } from '../relay-node/data-plane.ts'
import { createLiveTransmitEngine, findLiveTransmit, liveTransmitCommand } from '../relay-node/live-transmit-engine.ts'
import { createLog } from '../relay-node/log.ts'

const [, , stage, token = randomUUID()] = process.argv
const searchPath = readStackConfig().environment.PATH ?? ''
const path = findLiveTransmit(searchPath)
if (path === undefined) throw new Error('srt-live-transmit is not installed')
const log = createLog('bench')
const engine = createLiveTransmitEngine({
  command: liveTransmitCommand(path, searchPath),
  ...(stage === 'off' ? { isStageOff: true } : {}),
  log: (level, message, fields) =>
    level !== 'info' && process.stderr.write(`${level} ${message} ${JSON.stringify(fields ?? {})}\n`),
})
const dataPlane = await startDataPlane({
  hosts: ['127.0.0.1'],
  ports: { srtlaPort: 0, publishPort: 0, playPort: 0 },
  admission: admitPlainToken(token),
  capMbps: 100,
  streamWeakKbps: 1,
  engine,
  statsAddresses: 'masked',
  log,
})
process.stdout.write(`${JSON.stringify(dataPlane.ports())}\n`)
