/** Several control planes in one account at a provider, each with a database of its own. */
import { Writable } from 'node:stream'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { assertFleetName } from '../../../activities/fleet/fleet-names.ts'
import { createRelayProviders } from '../../../activities/fleet/relay-providers.ts'
import { connectPostgres } from '../../../db/connection.ts'
import { readWorkerConfig } from '../../../platform/config/config.ts'
import { createLog } from '../../../platform/log.ts'
import { createInstanceId } from '../../../providers/relay/instance-secrets.ts'
import { createDatabase } from '../../support/api.ts'
import { testEnvironment } from '../../support/environment.ts'
import { givenHetzner, never, relaySpec } from '../../support/hetzner.ts'
import type { HetznerServer } from '../../support/hetzner-server.ts'
import { runSvcHere } from '../../support/svc.ts'

const hetzner = { location: 'fsn1', server_type: 'cx22', image: 'debian-13' }
const regions = JSON.stringify([{ region: 'eu', display_name: 'Europe', provider: 'hetzner', hetzner }])

let account: HetznerServer
beforeEach(async () => {
  account = await givenHetzner()
})

/** Its functions take the name of the fleet of its worker; none by default. */
async function givenControlPlane() {
  const database = await createDatabase()
  const sql = connectPostgres(database.url, 2)
  onTestFinished(async () => {
    await sql.end({ timeout: 5 })
    await database.drop()
  })
  const variables = (fleetName?: string) =>
    testEnvironment({
      DATABASE_URL: database.url,
      SVC_REGIONS: regions,
      SVC_API_URL: 'https://api.example',
      SVC_HETZNER_API_URL: account.apiUrl,
      SVC_HETZNER_TOKEN: account.token,
      ...(fleetName === undefined ? {} : { SVC_FLEET_NAME: fleetName }),
    })
  const providerOf = async (fleetName?: string) => {
    const providers = await createRelayProviders(readWorkerConfig(variables(fleetName)), createLog('test', 'silent'))
    const provider = providers.get('eu')
    if (!provider) throw new Error('no provider')
    return { provider, providers }
  }
  return {
    sql,
    /** What a worker logs before it begins to work. Rejects as the worker does. */
    boot: async (fleetName?: string) => {
      const lines: string[] = []
      const log = createLog(
        'worker',
        'warn',
        new Writable({ write: (line, _, done) => done(void lines.push(`${line}`)) }),
      )
      const config = readWorkerConfig(variables(fleetName))
      await assertFleetName({ config, sql, log, ...(await providerOf(fleetName)) })
      return lines.join('')
    },
    /** An instance of this control plane, which has a row before it is created. */
    launch: async (fleetName?: string) => {
      const instanceId = createInstanceId('hetzner')
      await sql`insert into instances ${sql({
        instance_id: instanceId,
        region: 'eu',
        provider: 'hetzner',
        is_warm: true,
        launched_at: new Date(Date.now() - 300_000),
      })}`
      const { provider } = await providerOf(fleetName)
      const { providerId } = await provider.create(relaySpec({ instanceId }), never())
      return { instanceId, providerId }
    },
    fleet: (words: string, fleetName?: string) => runSvcHere(['fleet', ...words.split(' ')], variables(fleetName)),
    /** Two observations a minute apart. */
    sweepTwice: async (fleetName?: string) => {
      await runSvcHere(['fleet', 'compare'], variables(fleetName))
      await sql`update instances set unowned_since = unowned_since - interval '61 seconds'`
      return runSvcHere(['fleet', 'compare'], variables(fleetName))
    },
  }
}

const serverNames = () => account.project.servers().map(({ name }) => name)
const fleetsOf = () => account.project.servers().map(({ labels }) => labels['svc-fleet'])

describe('a second control plane in an account where no fleet has a name', () => {
  test('does not start, destroys nothing, and names the way out', async () => {
    const [first, second] = [await givenControlPlane(), await givenControlPlane()]
    const { instanceId } = await first.launch()
    expect(await first.boot()).toContain('SVC_FLEET_NAME is not set')
    await expect(second.boot()).rejects.toThrow(/Region eu: 1 instance .*does not know.*svc fleet adopt --name NAME/)
    const { code, stdout } = await second.sweepTwice()
    expect(stdout).toMatch(/^eu +- .* not swept: .*another control plane/m)
    expect([code, serverNames()]).toEqual([1, [instanceId]])
    expect((await second.fleet('compare --force')).code).toBe(1)
    expect(serverNames()).toEqual([instanceId])
  })

  test('is not swept by the first one either', async () => {
    const [first, second] = [await givenControlPlane(), await givenControlPlane()]
    const theirs = await second.launch()
    const ours = await first.launch()
    await first.sql`update instances set retired_at = now()`
    expect((await first.sweepTwice()).stdout).toMatch(/^eu +- .* not swept: /m)
    expect(serverNames()).toEqual([theirs.instanceId, ours.instanceId])
  })

  test('starts beside it once each has a name, and both sweep their own instances only', async () => {
    const [first, second] = [await givenControlPlane(), await givenControlPlane()]
    const theirs = await first.launch()
    await expect(second.boot('staging')).rejects.toThrow(/give that one a name first/)
    expect((await first.fleet('adopt --name production')).code).toBe(0)
    expect(await second.boot('staging')).toBe('')
    const ours = await second.launch('staging')
    await second.sql`update instances set retired_at = now()`
    expect((await second.sweepTwice('staging')).code).toBe(0)
    expect((await first.sweepTwice('production')).code).toBe(0)
    expect(serverNames()).toEqual([theirs.instanceId])
    expect(ours.instanceId).not.toBe(theirs.instanceId)
  })
})

describe('a fleet that gets its name', () => {
  test('does not start until its instances are adopted, then starts quietly and sweeps them', async () => {
    const plane = await givenControlPlane()
    const before = await plane.launch()
    await expect(plane.boot('production')).rejects.toThrow(/belongs to no fleet: run svc fleet adopt --name production/)

    const { code, stdout, stderr } = await plane.fleet('adopt --name production')

    expect(stdout).toMatch(new RegExp(`^eu +${before.instanceId} +adopted$`, 'm'))
    expect(stderr).toMatch(/^Now set SVC_FLEET_NAME=production for the workers and restart all of them/m)
    expect([code, fleetsOf()]).toEqual([0, ['production']])
    expect(await plane.boot('production')).toBe('')
    await plane.launch('production')
    expect(fleetsOf()).toEqual(['production', 'production'])
    await plane.sql`update instances set retired_at = now() where instance_id = ${before.instanceId}`
    await plane.sweepTwice('production')
    expect(serverNames()).not.toContain(before.instanceId)
    expect(account.project.servers()).toHaveLength(1)
    expect(await plane.sql`select action, detail from audit_entries`).toEqual([
      { action: 'instances_adopted', detail: { region: 'eu', fleet: 'production', instances: 1, force: false } },
    ])
  })

  test('loses nothing while a worker without the name still runs: it does not sweep, and gets the name', async () => {
    const plane = await givenControlPlane()
    const { instanceId, providerId } = await plane.launch()
    await plane.fleet('adopt --name production')
    await expect(plane.boot()).rejects.toThrow(/belongs to production: set SVC_FLEET_NAME to that name/)
    expect((await plane.sweepTwice()).stdout).toMatch(/^eu +- .* not swept: .*belongs to production/m)
    expect(await plane.sql`select from instances where gone_at is not null`).toHaveLength(0)

    // That worker takes the instance for gone, and the sweep of the fleet destroys it all the same.
    await plane.sql`update instances set retired_at = now(), gone_at = now() - interval '2 minutes'`
    expect((await plane.fleet('check', 'production')).stdout).toMatch(/^eu +hetzner +ok$/m)
    await plane.sweepTwice('production')
    expect([serverNames(), providerId === null, instanceId === '']).toEqual([[], false, false])
  })

  test('may be adopted again, and takes nothing from a fleet with a name', async () => {
    const [plane, other] = [await givenControlPlane(), await givenControlPlane()]
    await other.launch('staging')
    await plane.launch()
    for (const adopted of [1, 0]) {
      const { code, stderr } = await plane.fleet('adopt --name production', 'production')
      expect([code, stderr]).toEqual([0, `Adopted by production: ${adopted}.\n`])
    }
    expect(fleetsOf()).toEqual(['staging', 'production'])
  })

  test('leaves what its database does not know to others, unless it is forced', async () => {
    const [plane, lost] = [await givenControlPlane(), await givenControlPlane()]
    const { instanceId } = await lost.launch()
    const careful = await plane.fleet('adopt --name production')
    expect(careful.stdout).toMatch(
      new RegExp(`^eu +${instanceId} +left alone, since this database does not know it$`, 'm'),
    )
    expect(careful.stderr).toMatch(/^error: Left alone: 1\. .*run this again with --force\.$/m)
    expect([careful.code, fleetsOf()]).toEqual([1, [undefined]])
    const forced = await plane.fleet('adopt --name production --force --json')
    expect(JSON.parse(forced.stdout)).toEqual({
      fleet: 'production',
      regions: [{ region: 'eu', adopted: [instanceId], failed: [], left: [], error: null }],
    })
    expect([forced.code, fleetsOf()]).toEqual([0, ['production']])
    // Nobody owns it, so it costs money no longer.
    await plane.sweepTwice('production')
    expect(serverNames()).toEqual([])
  })

  test('refuses another name than the configured one, and says what could not be adopted', async () => {
    const plane = await givenControlPlane()
    const { instanceId } = await plane.launch()
    const wrong = await plane.fleet('adopt --name staging', 'production')
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/^error: SVC_FLEET_NAME is production/)])
    account.refuse(1, 'token_readonly', { method: 'PUT', status: 403 })
    const refused = await plane.fleet('adopt --name production')
    expect(refused.stdout).toMatch(new RegExp(`^eu +${instanceId} +could not be adopted: .*403`, 'm'))
    expect([refused.code, fleetsOf()]).toEqual([1, [undefined]])
  })
})

test('a copy of the database with a name of its own starts only when it is emptied, and ends no relay', async () => {
  const plane = await givenControlPlane()
  const { instanceId } = await plane.launch('production')
  await plane.sql`update instances set retired_at = now()`
  await expect(plane.boot('staging')).rejects.toThrow(/a copy of another control plane's, empty it/)
  expect((await plane.sweepTwice('staging')).code).toBe(1)
  expect(serverNames()).toEqual([instanceId])
})

test('a provider that does not answer stops no worker', async () => {
  const plane = await givenControlPlane()
  account.fail(9)
  expect(await plane.boot('production')).toContain('could not be compared')
})

test('check warns of a missing name, and names a conflict', async () => {
  const [first, second] = [await givenControlPlane(), await givenControlPlane()]
  await first.launch()
  const fine = await first.fleet('check')
  expect(fine.stdout).toMatch(/^eu +hetzner +ok$/m)
  expect(fine.stderr).toMatch(/^Warning: SVC_FLEET_NAME is not set/)
  const conflict = await second.fleet('check --json')
  const [region] = (JSON.parse(conflict.stdout) as { regions: { problem: string }[] }).regions
  expect(region?.problem).toContain('svc fleet adopt')
  expect([fine.code, conflict.code]).toEqual([0, 1])
})
