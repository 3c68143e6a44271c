/**
 * The path of reports is cut, and no process: relays, api and worker run on, and users reach the api. The tests share
 * one service and its relays, and run in this order.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { type ControlPlane, type PaidUser, startControlPlane } from '../support/control-plane.ts'
import { eventually, freeze } from '../support/relays.ts'

const healthTimeoutSeconds = 6
/** The number of relays of each region. From five on, a region is protected by another rule as well. */
const relaysOf = { single: 1, three: 3, six: 6 } as const
const regions = Object.keys(relaysOf) as (keyof typeof relaysOf)[]

interface StartedUser extends PaidUser {
  readonly sessionId: string
  readonly region: string
}

let plane: ControlPlane
let users: readonly StartedUser[]

beforeAll(async () => {
  plane = await startControlPlane({
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: String(healthTimeoutSeconds),
    SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '60',
    SVC_REGIONS: JSON.stringify(
      regions.map((region) => ({ region, display_name: region, provider: 'local', capacity: 10, warm: 1 })),
    ),
  })
  // Before the first success a worker may be where its own public address never answers.
  await eventually(
    () => plane.sql`select from api_probe where reached_at is not null`,
    ({ count }) => count === 1,
  )
})

async function beginIn(region: string): Promise<StartedUser> {
  const user = await plane.paidUser()
  const { status, body } = await user.start({ region })
  expect(status).toBe(201)
  return { ...user, sessionId: body.session.session_id, region }
}

async function startIn(region: string): Promise<StartedUser> {
  const user = await beginIn(region)
  await plane.untilState(user.sessionId, 'active')
  return user
}

/** Of the relays that run for a session, and of those that are ready for one. */
const silentFor = (seconds: number) => plane.sql<{ isSilent: boolean }[]>`
  select h.last_report_at < now() - make_interval(secs => ${seconds}) as is_silent
  from relay_sessions s join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
  where s.state = 'active'
  union all
  select last_report_at < now() - make_interval(secs => ${seconds})
  from instances where session_id is null and retired_at is null and last_report_at is not null`

const warmInstances = async () => {
  const rows = await plane.sql<{ region: string; instanceId: string }[]>`
    select region, instance_id from instances
    where session_id is null and retired_at is null and last_report_at is not null order by region`
  return rows.map(({ region, instanceId }) => `${region} ${instanceId}`)
}

const untilWarm = () => eventually(warmInstances, ({ length }) => length === regions.length)

/** Cuts the path. Resolves when all silence would have counted twice, and every job that looks for it has looked. */
async function cutPath(): Promise<void> {
  await plane.reports.block()
  await eventually(
    () => silentFor(2 * healthTimeoutSeconds),
    (relays) => relays.every(({ isSilent }) => isSilent),
  )
  for (const job of ['watch_health', 'watch_warm_instances', 'sweep_orphans']) await plane.runJob(job)
}

async function untilHeard(): Promise<void> {
  await plane.reports.open()
  await eventually(
    () => silentFor(healthTimeoutSeconds / 2),
    (relays) => relays.every(({ isSilent }) => !isSilent),
  )
}

const statesOf = (of: readonly StartedUser[]) =>
  Promise.all(
    of.map(async ({ region, sessionId }) => {
      const { session, transitions } = await plane.history(sessionId)
      return { region, state: session.state, transitions: transitions.map(({ to }) => to) }
    }),
  )

const expectUntouched = async (of: readonly StartedUser[]) =>
  expect(await statesOf(of)).toEqual(of.map(({ region }) => ({ region, state: 'active', transitions: ['active'] })))

const processOf = async ({ sessionId }: StartedUser): Promise<number> => {
  const { session } = await plane.history(sessionId)
  const relay = plane.relays().find(({ instanceId }) => instanceId === session.instance_id)
  if (!relay) throw new Error(`session ${sessionId} has no process`)
  return relay.pid
}

/** Why the session left the state in which its relay is in use. */
const reasonOfLoss = async ({ sessionId }: StartedUser) => {
  const { transitions } = await eventually(
    () => plane.history(sessionId),
    ({ transitions: all }) => all.some(({ to }) => to === 'grace'),
  )
  return transitions.find(({ to }) => to === 'grace')?.reason
}

test('the only relay of the service stays active while it cannot report, and after that', async () => {
  users = [await startIn('single')]
  await untilWarm()
  await cutPath()
  await expectUntouched(users)
  await untilHeard()
  await plane.runJob('watch_health')
  await expectUntouched(users)
})

describe('while no relay of three regions can report', () => {
  let warmBefore: readonly string[]
  let dead: StartedUser
  let starting: StartedUser

  test('all their relays stay active, and none that is ready is replaced', async () => {
    const others = await Promise.all(
      regions
        .filter((region) => region !== 'single')
        .flatMap((region) => Array.from({ length: relaysOf[region] }, () => startIn(region))),
    )
    users = [...users, ...others]
    warmBefore = await untilWarm()
    const relaysBefore = plane.relays()
    await cutPath()
    await expectUntouched(users)
    expect(await warmInstances()).toEqual(warmBefore)
    expect(plane.relays()).toEqual(relaysBefore)
  })

  test('a user sees the relay, and can stop it', async () => {
    const user = users.find(({ region }) => region === 'three')
    if (!user) throw new Error('no user has a relay there')
    const { status, body } = await user.stop()
    expect([status, body.session.session_id]).toEqual([200, user.sessionId])
    await plane.untilState(user.sessionId, 'stopped')
    users = users.filter((other) => other !== user)
  })

  test('a start is accepted', async () => {
    starting = await beginIn('single')
    expect(await statesOf([starting])).toEqual([{ region: 'single', state: 'provisioning', transitions: [] }])
  })

  test('a relay whose process has ended is lost all the same', async () => {
    ;[dead] = users.filter(({ region }) => region === 'three') as [StartedUser]
    process.kill(await processOf(dead), 'SIGKILL')
    expect(await reasonOfLoss(dead)).toBe('health_lost')
    users = users.filter((other) => other !== dead)
    await expectUntouched(users)
  })

  test('afterwards all report again, the started one becomes active, and the others are untouched', async () => {
    await untilHeard()
    await plane.untilState(starting.sessionId, 'active')
    users = [...users, starting]
    for (const job of ['watch_health', 'watch_warm_instances']) await plane.runJob(job)
    await expectUntouched(users)
    // The start has taken that of its region.
    const others = warmBefore.filter((instance) => !instance.startsWith('single '))
    expect(await warmInstances()).toEqual(expect.arrayContaining(others))
  })
})

test('a relay that falls silent when the path is open again is lost', async () => {
  const [silent, ...others] = users as [StartedUser, ...StartedUser[]]
  freeze(await processOf(silent))
  expect(await reasonOfLoss(silent)).toBe('health_lost')
  await expectUntouched(others)
})
