/** How long a relay takes to end is judged in real time. */
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import { endOf, givenControlPlane, startRelay } from '../relay-node/running.ts'

test('a relay ends about a second after SIGTERM and leaves no file behind', async () => {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url })
  const { statsPort } = await relay.up()
  await fetch(`http://127.0.0.1:${statsPort}/stats`) // its connection is kept open
  const signalledAt = performance.now()

  relay.child.kill('SIGTERM')

  expect(await endOf(relay.child)).toBe(0)
  expect(performance.now() - signalledAt).toBeLessThan(1_500)
  expect(readdirSync(dirname(relay.stateFile))).toEqual([])
})
