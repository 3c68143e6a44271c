/** The rows of instances: their launch, and the claim of a warm instance. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Sql } from '../../../db/connection.ts'
import { bindInstance, claimWarmInstance, insertInstance, recordLaunch } from '../../../db/fleet/instances.ts'
import { markOrphan } from '../../../db/fleet/orphans.ts'
import { writeTransitions } from '../../../db/transactions/write-transitions.ts'
import { waitForBlockedQuery } from '../../support/locks.ts'
import { startTransitions, stopNow, transitionsRequest } from '../../support/relay-transitions.ts'
import { insertWarmInstance } from '../../support/unbound-relays.ts'

const { sql, insertSession } = await startTransitions()

describe('a warm instance whose row is locked when a session needs one', () => {
  const placement = { region: 'local', image: 'an image', reportSecondsMax: 3600 }

  /**
   * The instance that a session gets while a transaction has the one that reported last locked.
   * @param change what that transaction changes before its end.
   */
  async function claimLocked(instanceId: string, change: (other: Sql) => PromiseLike<unknown>) {
    await sql`update instances set last_report_at = now() where instance_id = ${instanceId}`
    const sessionId = await insertSession()
    const claiming = sql.begin(async (other) => {
      await other`select from instances where instance_id = ${instanceId} for no key update`
      const claim = claimWarmInstance(sql, sessionId, placement).execute()
      await waitForBlockedQuery(sql, other)
      await change(other)
      return { claim }
    })
    const [claimed] = await (await claiming).claim
    return claimed?.instanceId
  }

  test('is given to it when the row is free again, as after a stored report', async () => {
    const instanceId = await insertWarmInstance(sql, { image: placement.image })
    const claimed = claimLocked(
      instanceId,
      (tx) => tx`update instances set last_report_at = now() where instance_id = ${instanceId}`,
    )
    expect(await claimed).toBe(instanceId)
  })

  test('is not given to it when another session has got it: the session gets the next one, or none', async () => {
    const takenAnd = async () => {
      const instanceId = await insertWarmInstance(sql, { image: placement.image })
      const otherSession = await insertSession()
      return claimLocked(
        instanceId,
        (tx) => tx`update instances set session_id = ${otherSession} where instance_id = ${instanceId}`,
      )
    }
    const next = await insertWarmInstance(sql, { image: placement.image })
    await sql`update instances set last_report_at = now() - interval '1 second' where instance_id = ${next}`
    expect(await takenAnd()).toBe(next)
    expect(await takenAnd()).toBeUndefined()
  })
})

const endpoint = { host: '198.51.100.7', srtlaPort: 5000, publishPort: 4001, playPort: 4000, statsPort: 5080 }

test('the launch of an instance whose session has stopped leaves it due for the next sweep', async () => {
  const placement = { region: 'local', provider: 'local', image: 'an image', capacity: 10, reportSecondsMax: 3600 }
  const [sessionId, instanceId] = [await insertSession(), `local-${randomUUID()}`]
  await insertInstance(sql, { instanceId, sessionId, zone: 0 }, placement)
  await writeTransitions(sql, transitionsRequest(sessionId, { transitions: [stopNow] }))
  await markOrphan(sql, instanceId, sessionId)
  await recordLaunch(sql, instanceId, { instanceId, providerId: null, ...endpoint })
  const [row] = await sql`
    select unowned_since <= now() - interval '1 minute' as is_due from instances where instance_id = ${instanceId}`
  expect(row?.isDue).toBe(true)
})

describe('the IPv6 address of an instance', () => {
  const launch = async (hostV6?: string) => {
    const instanceId = await insertWarmInstance(sql, { image: 'an image' })
    await recordLaunch(sql, instanceId, { instanceId, providerId: null, ...endpoint, hostV6 })
    return instanceId
  }
  const addressOf = async (sessionId: string) =>
    (await sql<{ relayHostV6: string | null }[]>`select relay_host_v6 from relay_sessions where id = ${sessionId}`)[0]
      ?.relayHostV6

  test('goes to the session that gets the instance, and none does from an instance without one', async () => {
    const sessionId = await insertSession()
    await bindInstance(sql, sessionId, await launch('2001:db8:7::17'))
    expect(await addressOf(sessionId)).toBe('2001:db8:7::17')
    await bindInstance(sql, sessionId, await launch())
    expect(await addressOf(sessionId)).toBeNull()
  })

  test('goes to the session that claims the instance while it is warm', async () => {
    await sql`update instances set gone_at = now()`
    const sessionId = await insertSession()
    const instanceId = await launch('2001:db8:7::18')
    await sql`update instances set last_report_at = now() where instance_id = ${instanceId}`
    await claimWarmInstance(sql, sessionId, { region: 'local', image: 'an image', reportSecondsMax: 3600 })
    expect(await addressOf(sessionId)).toBe('2001:db8:7::18')
  })
})

test('a session gets a warm instance of the present image before one of an old image that reported later', async () => {
  const placement = { region: 'local', image: 'the present image', reportSecondsMax: 3600 }
  await sql`update instances set gone_at = now()`
  const reportedMinutesAgo = async (minutes: number, image: string | null) => {
    const instanceId = await insertWarmInstance(sql, { image })
    await sql`
      update instances set last_report_at = now() - make_interval(mins => ${minutes}) where instance_id = ${instanceId}`
    return instanceId
  }
  const imageless = await reportedMinutesAgo(1, null)
  const old = await reportedMinutesAgo(0, 'an old image')
  const current = await reportedMinutesAgo(2, placement.image)
  const claim = async () => (await claimWarmInstance(sql, await insertSession(), placement))[0]?.instanceId
  expect([await claim(), await claim(), await claim(), await claim()]).toEqual([current, old, imageless, undefined])
})
