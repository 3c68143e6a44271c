/** Datagrams that no socket sends, written by a program with raw sockets. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { buildRegistration } from '../../relay-node/srtla-packets.ts'
import { endOf, givenControlPlane, startRelay, statsOf } from '../relay-node/running.ts'
import { handshake } from '../support/srt-packets.ts'

/** Sends the datagram of the third argument from port 0 to the address and port of the first two. */
const sendFromPortZero = `
import socket, struct, sys
host, port, payload = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3])
header = struct.pack('!HHHH', 0, port, 8 + len(payload), 0)
socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP).sendto(header + payload, (host, 0))`

test('a datagram from source port 0 ends no relay, and later callers are answered on each of its ports', async () => {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url })
  const state = await relay.up()
  const questions = [
    { port: state.srtlaPort, question: buildRegistration('reg1', randomBytes(256)) },
    { port: state.publishPort, question: handshake() },
    { port: state.playPort, question: handshake() },
  ]
  const ended = endOf(relay.child).then((code) => Promise.reject(new Error(`the relay has ended with code ${code}`)))
  // Its end after the test is no failure.
  ended.catch(() => {})
  for (const { port, question } of questions) {
    await promisify(execFile)('python3', ['-c', sendFromPortZero, state.host, String(port), question.toString('hex')])
    const caller = createSocket('udp4')
    onTestFinished(() => void caller.close())
    // It arrives behind the other one, so the answer shows that the relay has survived it.
    caller.send(question, port, state.host)
    const [answer] = await Promise.race([once(caller, 'message'), ended])
    expect(answer.length).toBeGreaterThan(0)
  }
  expect((await statsOf(state)).groups).toEqual([])
})
