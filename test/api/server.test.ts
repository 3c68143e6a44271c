import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { Client, createDatabase, type TokenSet } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { startProgram } from '../support/programs.ts'
import { eventually, freePort } from '../support/relays.ts'

test('an api that is asked to end answers what is under way, takes nothing new, and is gone within seconds', async () => {
  const database = await createDatabase()
  atEnd(() => database.drop())
  const port = await freePort()
  const program = startProgram('api', {
    PORT: String(port),
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    SVC_JWT_SECRET: randomBytes(48).toString('base64'),
    SVC_RELAY_AUTH_SECRET: randomBytes(48).toString('base64url'),
    OAUTH_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    SVC_BILLING_WEBHOOK_SECRET: `whsec_${randomBytes(32).toString('base64')}`,
  })
  const api = new Client(`http://127.0.0.1:${port}`)
  await eventually(
    () => api.get('/capacity/status').catch(() => undefined),
    (answer) => answer?.status === 200,
  )
  // Hashing the password takes a quarter of a second, in which the api is asked to end.
  const underWay = api.post<TokenSet>('/auth/signup', { email: 'a@example.com', password: 'correct horse battery' })
  await sleep(100)
  const began = Date.now()
  const ended = program.stop()
  expect((await underWay).status).toBe(201)
  await ended
  expect(Date.now() - began).toBeLessThan(5000)
  await expect(api.get('/capacity/status')).rejects.toThrow()
})
