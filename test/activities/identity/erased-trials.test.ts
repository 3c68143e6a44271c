/** What stays of the trial of an erased account. */
import { beforeEach, expect, test } from 'vitest'
import { statusAndCode } from '../../support/api.ts'
import { eraseAccount } from '../../support/erasures.ts'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { eventually, type RelayUser } from '../../support/relays.ts'
import { entitlementOf, givenNewcomer, givenStranger, proveAddress } from '../../support/trials.ts'

const service = await startFakeRelayService({ variables: { SVC_TRIAL_SECONDS: '3600' } })
const { api } = service
const { sql } = api

// All starts of this file come from one network.
beforeEach(async () => {
  await sql`delete from trial_networks`
})

/** Another account with the address, which a mail of ours proves. */
async function signUpAgain(email: string): Promise<RelayUser> {
  const user = await givenStranger(service)
  await sql`update users set email = ${email} where id = ${user.userId}`
  await proveAddress(api, { ...user, email })
  return { ...user, email }
}

/** Begins the trial of a new account, and ends its relay. */
async function givenTrial(): Promise<RelayUser> {
  const user = await givenNewcomer(service)
  const { session_id } = await service.startActiveRelay(user)
  await user.stop({ session_id, immediate: true })
  await eventually(user.active, ({ sessions }) => sessions.length === 0)
  return user
}

test('an erased account with a trial leaves a keyed hash alone, and its address gets no other trial for 400 days', async () => {
  const user = await givenTrial()
  await eraseAccount(api, user)
  const kept = await sql`select * from erased_trials`
  expect(kept.map((row) => Object.keys(row).toSorted())).toEqual([['addressHash', 'erasedAt']])
  expect(await sql`select from trials where user_id = ${user.userId}`).toHaveLength(0)

  const again = await signUpAgain(user.email.toUpperCase())
  expect(await entitlementOf(api, again)).not.toHaveProperty('trial')
  expect(statusAndCode(await again.start())).toEqual([403, 'relay_access_denied'])
  await sql`update erased_trials set erased_at = now() - interval '401 days'`
  expect((await again.start()).status).toBe(201)
})

test('the addresses of the start and of the end are both kept', async () => {
  const user = await givenTrial()
  await sql`update users set email = ${`new-${user.email}`}, email_verified_at = null, trial_address_hash = null where id = ${user.userId}`
  await proveAddress(api, { ...user, email: `new-${user.email}` })
  await eraseAccount(api, { ...user, email: `new-${user.email}` })
  for (const email of [user.email, `new-${user.email}`])
    expect(statusAndCode(await (await signUpAgain(email)).start())).toEqual([403, 'relay_access_denied'])
})

test('an erased account that had not begun its trial leaves nothing', async () => {
  await sql`delete from erased_trials`
  const user = await givenNewcomer(service)
  await eraseAccount(api, user)
  expect(await sql`select from erased_trials`).toHaveLength(0)
  expect((await (await signUpAgain(user.email)).start()).status).toBe(201)
})
