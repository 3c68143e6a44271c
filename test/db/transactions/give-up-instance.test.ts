/** A lost instance that is ended before the next one exists: either it comes back, or it is given up. */
import { expect, test } from 'vitest'
import { listMissedReports } from '../../../db/relay/health.ts'
import { giveUpInstance } from '../../../db/transactions/give-up-instance.ts'
import { writeTransitions } from '../../../db/transactions/write-transitions.ts'
import { healthLost, startTransitions, stopGrace, transitionsRequest } from '../../support/relay-transitions.ts'

const { sql, bind, ageSession, insertActiveSession, writeReport } = await startTransitions()

const restored = { to: 'active', reason: 'health_restored', initiator: 'relay' } as const
const restore = (id: string) =>
  writeTransitions(sql, transitionsRequest(id, { version: 2, cause: 'health_restored', transitions: [restored] }))

/** A session that has been in its grace for lost health for ten seconds, and has reported before. */
async function givenLost(): Promise<string> {
  // All sessions of this file have the same one.
  await sql`delete from instances`
  const id = await insertActiveSession()
  await bind(id)
  await writeReport(id, 30)
  const lost = { version: 1, cause: 'health_lost', transitions: [healthLost], graceSeconds: 60 } as const
  await writeTransitions(sql, transitionsRequest(id, lost))
  await ageSession(id, 10)
  return id
}

test('a lost instance that has not reported since is given up, and a later report makes its session not active', async () => {
  const id = await givenLost()
  expect(await giveUpInstance(sql, id, 'i-1')).toBe('given_up')
  await writeReport(id, 0)
  expect(await restore(id)).toMatchObject({ isWritten: false, session: { state: 'grace' } })
  await writeReport(id, 3)
  expect((await listMissedReports(sql, 10)).restored).toEqual([])
  expect(await giveUpInstance(sql, id, 'i-1')).toBe('given_up')
})

test('a lost instance that has reported since is not given up, and its session is active again', async () => {
  const id = await givenLost()
  await writeReport(id, 1)
  expect(await giveUpInstance(sql, id, 'i-1')).toBe('came_back')
  expect(await restore(id)).toMatchObject({ isWritten: true, session: { state: 'active' } })
  expect(await giveUpInstance(sql, id, 'i-1')).toBe('not_wanted')
})

test('the instance of a session that ends for another reason is not given up', async () => {
  const id = await insertActiveSession()
  await bind(id)
  const stopped = { version: 1, transitions: [stopGrace], graceSeconds: 60 }
  await writeTransitions(sql, transitionsRequest(id, stopped))
  expect(await giveUpInstance(sql, id, 'i-1')).toBe('not_wanted')
})
