import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { choosePort, freePort, isFreePort } from '../../../platform/embedded/ports.ts'

async function takenPort(host = '127.0.0.1'): Promise<number> {
  const server = createServer().listen(0, host)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as { port: number }).port
}

const wish = { what: 'the thing', variable: 'SVC_THING_PORT', explicit: undefined, preferred: [] }

test('the first preferred port that nobody holds is taken', async () => {
  const [taken, free] = [await takenPort(), await freePort()]
  expect(await choosePort({ ...wish, preferred: [taken, free] })).toBe(free)
})

test('when all preferred ports are held, any free one is taken', async () => {
  const taken = await takenPort()
  const port = await choosePort({ ...wish, preferred: [taken] })
  expect(port).not.toBe(taken)
  expect(await isFreePort(port)).toBe(true)
})

test('a port that was asked for and is held is an error that says what to do', async () => {
  const taken = await takenPort()
  await expect(choosePort({ ...wish, explicit: taken })).rejects.toThrow(
    `Port ${taken} for the thing (SVC_THING_PORT) is taken by another program. End that program, set SVC_THING_PORT to another port`,
  )
})

test('a port held on all addresses is not free on loopback either', async () => {
  expect(await isFreePort(await takenPort('0.0.0.0'))).toBe(false)
})
