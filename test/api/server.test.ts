import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Client, createDatabase, type TokenSet } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { testEnvironment } from '../support/environment.ts'
import { type Program, startProgram } from '../support/programs.ts'
import { eventually, freePort } from '../support/relays.ts'

interface RunningApi {
  readonly api: Client
  readonly program: Program
}

async function startApiProgram(variables: Readonly<Record<string, string>> = {}): Promise<RunningApi> {
  const database = await createDatabase()
  atEnd(() => database.drop())
  const port = await freePort()
  const program = startProgram('api', testEnvironment({ PORT: String(port), DATABASE_URL: database.url, ...variables }))
  const api = new Client(`http://127.0.0.1:${port}`)
  await eventually(
    () => api.get('/capacity/status').catch(() => undefined),
    (answer) => answer?.status === 200,
  )
  return { api, program }
}

test('after SIGTERM the api completes running requests, accepts no new ones and exits within seconds', async () => {
  const { api, program } = await startApiProgram()
  // Hashing the password takes a quarter of a second, in which the api is asked to end.
  const pendingSignup = api.post<TokenSet>('/auth/signup', {
    email: 'a@example.com',
    password: 'correct horse battery',
  })
  await sleep(100)
  const startedAt = Date.now()
  const ended = program.stop()
  expect((await pendingSignup).status).toBe(201)
  await ended
  expect(Date.now() - startedAt).toBeLessThan(5000)
  await expect(api.get('/capacity/status')).rejects.toThrow()
})

test('a draining api is not ready and answers every request until the drain time ends', async () => {
  const { api, program } = await startApiProgram({ SVC_DRAIN_SECONDS: '3' })
  const readiness = async () => {
    const answer = await fetch(`${api.url}/readyz`)
    return [answer.status, await answer.json()]
  }
  expect(await readiness()).toEqual([200, { status: 'ready' }])
  const startedAt = Date.now()
  const ended = program.stop()
  await eventually(readiness, ([status]) => status === 503, 2)
  expect(await readiness()).toEqual([503, { status: 'draining' }])
  while (Date.now() - startedAt < 2000) {
    expect((await api.get('/capacity/status')).status).toBe(200)
    await sleep(50)
  }
  await ended
  expect(Date.now() - startedAt).toBeGreaterThan(2900)
  await expect(fetch(`${api.url}/readyz`)).rejects.toThrow()
})
