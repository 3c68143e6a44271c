/** Look-ups of host names that users choose, at a real name server on a socket that may never answer. */
import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { findAddressProblem, publicEndpointRules } from '../../../providers/webhooks/endpoint-rules.ts'
import { createHostLookup } from '../../../providers/webhooks/host-lookup.ts'

/** @param address in the answers to questions for IPv4 addresses; undefined for a server that never answers. */
async function nameServer(address?: readonly number[]) {
  const socket = createSocket('udp4')
  const questions: string[] = []
  socket.on('message', (question, { port }) => {
    questions.push(nameOf(question))
    if (address) socket.send(answerTo(question, address), port, '127.0.0.1')
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  return { questions, servers: [`127.0.0.1:${socket.address().port}`] }
}

function nameOf(question: Buffer): string {
  const labels: string[] = []
  for (let at = 12; question[at] !== 0; at += 1 + (question[at] ?? 0))
    labels.push(question.toString('latin1', at + 1, at + 1 + (question[at] ?? 0)))
  return labels.join('.')
}

function answerTo(question: Buffer, address: readonly number[]): Buffer {
  const end = 12 + nameOf(question).length + 2 + 4
  const isForIpv4 = question.readUInt16BE(end - 4) === 1
  const head = Buffer.from(question.subarray(0, end))
  head.writeUInt16BE(0x8180, 2)
  head.writeUInt16BE(isForIpv4 ? 1 : 0, 6)
  head.writeUInt16BE(0, 10)
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address])
  return isForIpv4 ? Buffer.concat([head, record]) : head
}

const save = (host: string, userId: string, resolve: ReturnType<typeof createHostLookup>) =>
  findAddressProblem(new URL(`https://${host}/`), userId, { ...publicEndpointRules, resolve })

test('a name whose server answers is accepted with a public address and refused with a private one', async () => {
  const open = createHostLookup(undefined, (await nameServer([1, 1, 1, 1])).servers)
  const closed = createHostLookup(undefined, (await nameServer([10, 0, 0, 1])).servers)
  expect(await save('hooks.example.com', 'user', open)).toBeUndefined()
  expect(await save('hooks.example.com', 'user', closed)).toBeTypeOf('string')
})

test('six saves with a server that never answers end in time, ask one name at a time and delay no other look-up', async () => {
  const { questions, servers } = await nameServer()
  const resolve = createHostLookup({ millisMax: 1000, concurrencyMax: 32 }, servers)
  const startedAt = performance.now()
  /** The names that were asked before the look-up of the host at the same place ended. */
  const askedBefore: string[][] = []
  const saves = Array.from({ length: 6 }, async (_, index) => {
    const problem = await save(`h${index}.example.com`, 'user', resolve)
    askedBefore[index] = [...questions]
    return problem
  })
  await lookup('localhost')
  // The look-up of the process ended before any of the saves.
  expect(await Promise.race([...saves, 'none has ended'])).toBe('none has ended')
  expect(await Promise.all(saves)).toEqual(Array(6).fill(expect.any(String)))
  // One after the other, each with its whole time, would take 6 s.
  expect(performance.now() - startedAt).toBeLessThan(3000)
  expect(askedBefore[0]).toContain('h0.example.com')
  for (const [index, asked] of askedBefore.entries())
    expect(asked.filter((name) => Number(name.charAt(1)) > index)).toEqual([])
})

test('look-ups of all accounts together have a bound, after which new ones are refused at once', async () => {
  const { questions, servers } = await nameServer()
  const resolve = createHostLookup({ millisMax: 300, concurrencyMax: 2 }, servers)
  const settled = await Promise.allSettled(
    Array.from({ length: 5 }, (_, index) => resolve(`h${index}.example.com`, `user ${index}`)),
  )
  const codes = settled.map((result) => (result.status === 'rejected' ? result.reason.code : 'resolved'))
  expect(codes).toEqual(['ECANCELLED', 'ECANCELLED', 'EBUSY', 'EBUSY', 'EBUSY'])
  expect(new Set(questions).size).toBe(2)
})
