/** The shutdown of the api on SIGTERM. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { Client, createDatabase } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { testEnvironment } from '../support/environment.ts'
import { findFreePort } from '../support/ports.ts'
import { startProgram } from '../support/programs.ts'
import { eventually } from '../support/relays.ts'

const drainSeconds = 3

async function startApiProgram() {
  const database = await createDatabase()
  atEnd(() => database.drop())
  const port = await findFreePort()
  const variables = { PORT: String(port), DATABASE_URL: database.url, SVC_DRAIN_SECONDS: String(drainSeconds) }
  const program = startProgram('api', testEnvironment(variables))
  const api = new Client(`http://127.0.0.1:${port}`)
  await eventually(
    () => api.get('/capacity/status').catch(() => undefined),
    (answer) => answer?.status === 200,
  )
  return { api, port, program }
}

/** Sends a sign-up but for the last byte of its body, so that it runs until the test completes it. */
async function beginSignup(port: number) {
  const body = JSON.stringify({ email: 'a@example.com', password: 'correct horse battery' })
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const head = `POST /api/v1/auth/signup HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
  socket.write(`${head}\r\n\r\n${body.slice(0, -1)}`)
  return {
    complete: () => {
      socket.write(body.slice(-1))
      return text(socket)
    },
  }
}

test('after SIGTERM the api is not ready and answers every request until its drain time ends, then completes those that run, accepts no new ones and exits', async () => {
  const { api, port, program } = await startApiProgram()
  const signup = await beginSignup(port)
  const readiness = async () => {
    const answer = await fetch(`${api.url}/readyz`, { headers: { Connection: 'close' } })
    return [answer.status, await answer.json()]
  }
  expect(await readiness()).toEqual([200, { status: 'ready' }])
  const startedAt = performance.now()
  const ended = program.stop()
  await eventually(readiness, ([status]) => status === 503)
  expect(await readiness()).toEqual([503, { status: 'draining' }])
  const ask = () => api.get('/capacity/status', { headers: { Connection: 'close' } }).catch(() => undefined)
  const refused = await eventually(ask, (answer) => {
    if (answer) expect(answer.status).toBe(200)
    return answer === undefined
  })
  expect(refused).toBeUndefined()
  expect(performance.now() - startedAt).toBeGreaterThan(drainSeconds * 1000 - 100)
  expect(await signup.complete()).toMatch(/^HTTP\/1\.1 201 /)
  await ended
})
