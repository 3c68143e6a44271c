/** The choice of ports for embedded servers. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { choosePort, findFreePort, isFreePort } from '../../../platform/embedded/ports.ts'

async function takenPort(host = '127.0.0.1'): Promise<number> {
  const server = createServer().listen(0, host)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as { port: number }).port
}

const choice = { server: 'the server', variable: 'SVC_SERVER_PORT', explicit: undefined, preferred: [] }

test('the first preferred port that is free is chosen', async () => {
  const [taken, free] = [await takenPort(), await findFreePort()]
  expect(await choosePort({ ...choice, preferred: [taken, free] })).toBe(free)
})

test('when all preferred ports are taken, any free one is chosen', async () => {
  const taken = await takenPort()
  const port = await choosePort({ ...choice, preferred: [taken] })
  expect(port).not.toBe(taken)
  expect(await isFreePort(port)).toBe(true)
})

test('an explicit port that is taken is an error with the way out', async () => {
  const taken = await takenPort()
  await expect(choosePort({ ...choice, explicit: taken })).rejects.toThrow(
    `Port ${taken} for the server (SVC_SERVER_PORT) is taken by another program. End that program, set SVC_SERVER_PORT to another port`,
  )
})

test.each(['127.0.0.1', '0.0.0.0', '::1', '::'])('a port that is taken on %s is not chosen', async (host) => {
  const taken = await takenPort(host)
  expect(await choosePort({ ...choice, preferred: [taken] })).not.toBe(taken)
})

test('ports that are asked for at the same time differ', async () => {
  const ports = await Promise.all(Array.from({ length: 20 }, findFreePort))
  expect(new Set(ports).size).toBe(20)
})
