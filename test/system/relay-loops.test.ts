/** Two relays that receive datagrams with each other's addresses as forged sources. */
import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { buildNotice, buildRegistration, parsePacket } from '../../relay-node/srtla-packets.ts'
import type { StateFile } from '../../relay-node/state-file.ts'
import { givenControlPlane, startRelay } from '../relay-node/running.ts'
import { ask, givenSocket } from '../relay-node/udp-callers.ts'
import { openRawSockets } from '../support/raw-datagrams.ts'
import { handshake } from '../support/srt-packets.ts'

async function givenTwoRelays() {
  const plane = await givenControlPlane()
  const relays = [startRelay({ apiUrl: plane.url }), startRelay({ apiUrl: plane.url })] as const
  const [first, second] = await Promise.all([relays[0].up(), relays[1].up()])
  const raw = await openRawSockets()
  onTestFinished(() => raw.close())
  return { first, second, raw, caller: await givenSocket() }
}

/** A loop would go round hundreds of times meanwhile, as each answer waits behind the datagrams that arrived before. */
async function spendTurns(relays: readonly StateFile[]) {
  for (let turn = 0; turn < 200; turn += 1) {
    // From a network that has its share of the answers.
    const caller = await givenSocket(`127.3.${turn}.1`)
    for (const { host, publishPort } of relays) await ask(caller, handshake({ version: 4 }), publishPort, host)
  }
}

test('no forged handshake makes two relays answer each other', async () => {
  const { first, second, raw } = await givenTwoRelays()
  const forged = [
    handshake({ version: 4, socketId: 0 }),
    handshake({ version: 4, socketId: 77 }),
    handshake({ version: 5, socketId: 0, cookie: 4711 }),
  ]
  await raw.send(
    forged.map((payload) => ({
      source: second.host,
      sourcePort: second.publishPort,
      target: first.host,
      targetPort: first.publishPort,
      payload,
    })),
  )
  await spendTurns([first, second])

  // The forged ones, and the only reply, which is not answered.
  expect(await raw.countBetween(first.publishPort, second.publishPort)).toBe(forged.length + 1)
})

test('a datagram from one of its own ports gets no answer of a relay', async () => {
  const { first, raw, caller } = await givenTwoRelays()
  const ports = [first.srtlaPort, first.publishPort, first.playPort]
  const pairs = ports.flatMap((port) => ports.map((from) => ({ port, from })))
  await raw.send(
    pairs.map(({ port, from }) => ({
      source: first.host,
      sourcePort: from,
      target: first.host,
      targetPort: port,
      payload: port === first.srtlaPort ? buildRegistration('reg1', randomBytes(256)) : handshake({ version: 4 }),
    })),
  )
  // Their answers come after the others would.
  await ask(caller, buildRegistration('reg1', randomBytes(256)), first.srtlaPort, first.host)
  for (const port of [first.publishPort, first.playPort]) await ask(caller, handshake({ version: 4 }), port, first.host)

  for (const { port, from } of pairs.filter(({ port, from }) => port < from))
    expect(await raw.countBetween(port, from)).toBe(2)
})

test('a keepalive between two relays that are forged links of each other ends after a few echoes', async () => {
  const { first, second, raw, caller } = await givenTwoRelays()
  for (const [relay, forged] of [
    [first, second],
    [second, first],
  ] as const) {
    const registered = parsePacket(
      await ask(caller, buildRegistration('reg1', randomBytes(256)), relay.srtlaPort, relay.host),
    )
    if (registered?.kind !== 'reg2') throw new Error(`the answer to REG1 is ${registered?.kind}`)
    const payload = buildRegistration('reg2', registered.id)
    const link = { source: forged.host, sourcePort: forged.srtlaPort, target: relay.host, targetPort: relay.srtlaPort }
    await raw.send([{ ...link, payload }])
  }
  const keepalive = Buffer.concat([buildNotice('keepalive'), randomBytes(1_000)])
  const link = { source: second.host, sourcePort: second.srtlaPort, target: first.host, targetPort: first.srtlaPort }
  await raw.send([{ ...link, payload: keepalive }])
  await spendTurns([first, second])

  // Two registrations with their answers, the forged keepalive and its echoes.
  const count = await raw.countBetween(first.srtlaPort, second.srtlaPort)
  expect(count).toBeGreaterThan(5)
  expect(count).toBeLessThan(20)
})
