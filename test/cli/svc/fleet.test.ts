/** The commands that compare, check and name the fleet, against a service that runs. */
import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { recordProviderCheck } from '../../../db/operations/provider-checks.ts'
import { createLog } from '../../../platform/log.ts'
import { createInstanceId } from '../../../providers/relay/instance-secrets.ts'
import { createLocalRelayProvider } from '../../../providers/relay/local.ts'
import { endLocalRelays } from '../../../providers/relay/local-relays.ts'
import { testEnvironment } from '../../support/environment.ts'
import { createHetznerRelays, givenHetzner, hetznerRegion, relaySpec } from '../../support/hetzner.ts'
import { startService, type TestService } from '../../support/relays.ts'
import { type Ended, runSvc, runSvcHere } from '../../support/svc.ts'

const local = [
  { region: 'here', display_name: 'Here', provider: 'local', capacity: 5, warm: 2 },
  { region: 'there', display_name: 'There', provider: 'local' },
]
const hetzner = {
  region: 'eu',
  display_name: 'Europe',
  provider: 'hetzner',
  hetzner: { location: 'fsn1', server_type: 'cx22', image: 'debian-13' },
}

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false, variables: { SVC_REGIONS: JSON.stringify(local) } })
})
beforeEach(async () => {
  await endLocalRelays(service.dataDir)
  for (const table of ['instances', 'regions', 'provider_checks'])
    await service.api.sql`delete from ${service.api.sql(table)}`
})

const environmentOf = (variables: Readonly<Record<string, string>> = {}) =>
  testEnvironment({
    DATABASE_URL: service.api.services.config.database.url,
    SVC_DATA_DIR: service.dataDir,
    SVC_REGIONS: JSON.stringify(local),
    ...variables,
  })

/** Runs `svc fleet` with the configuration of the service. */
const fleet = (words: string, variables: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  runSvcHere(['fleet', ...words.split(' ')], environmentOf(variables))

/** Starts a relay process in the region `here`. */
async function startRelay(instanceId = createInstanceId('local')): Promise<string> {
  const relays = createLocalRelayProvider({ dataDir: service.dataDir, log: createLog('test', 'silent') })
  const spec = relaySpec({ instanceId, region: 'here', apiUrl: service.api.url, healthIntervalSeconds: 1 })
  await relays.create(spec, new AbortController().signal)
  return instanceId
}

const insertInstance = async (values: Record<string, unknown>) => {
  const row = { instance_id: createInstanceId('local'), region: 'here', provider: 'local', ...values }
  await service.api.sql`insert into instances ${service.api.sql(row)}`
  return row.instance_id
}
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000)
const readRows = async () => [
  await service.api.sql`select * from instances order by instance_id`,
  await service.api.sql`select * from provider_checks`,
]

interface Difference {
  readonly instance_id: string
  readonly kind: string
  readonly outcome: string
  readonly since: string | null
}
interface Comparison {
  readonly regions: readonly { region: string; listed: number; blocked: boolean; differences: readonly Difference[] }[]
}
const differencesOf = ({ stdout }: Ended) => {
  const [here] = (JSON.parse(stdout) as Comparison).regions
  return new Map(here?.differences.map(({ instance_id, kind, outcome }) => [instance_id, [kind, outcome]]))
}

describe('compare', () => {
  test('prints one line per difference in a dry run, and changes neither rows nor instances', async () => {
    const foreign = await startRelay()
    const retired = await startRelay(await insertInstance({ retired_at: new Date(), unowned_since: new Date() }))
    const orphan = await startRelay(await insertInstance({ unowned_since: minutesAgo(2), launched_at: minutesAgo(5) }))
    const unbound = await startRelay(await insertInstance({ is_warm: true, launched_at: new Date() }))
    const missing = await insertInstance({ created_at: minutesAgo(9), launched_at: minutesAgo(9) })
    const before = await readRows()
    const { code, stdout, stderr } = await fleet('compare --dry-run')
    const lineOf = (instanceId: string) => stdout.split('\n').filter((line) => line.includes(instanceId))
    expect(lineOf(foreign)).toEqual([
      expect.stringMatching(/foreign.*first observation.*waits for a second observation/),
    ])
    expect(lineOf(retired)).toEqual([expect.stringMatching(/retired .*would be destroyed/)])
    expect(lineOf(orphan)).toEqual([expect.stringMatching(/orphan .*observed before .*would be destroyed/)])
    expect(lineOf(unbound)).toEqual([expect.stringMatching(/unbound .*kept/)])
    expect(lineOf(missing)).toEqual([expect.stringMatching(/missing .*would count as gone/)])
    expect(stdout).toMatch(/^REGION +LISTED +DIFFERENT +SECONDS +RESULT\nhere +4 +5 +\d+\.\d +compared$/m)
    expect(stderr).toMatch(/^error: Waiting for a second observation: 1\. Run this again 60 s after/m)
    expect(stderr).toMatch(/^Dry run: nothing was changed\.$/m)
    expect(code).toBe(6)
    expect(await readRows()).toEqual(before)
    expect(differencesOf(await fleet('compare --dry-run --json')).size).toBe(5)
  })

  test('destroys an orphan with its second observation, and then finds no difference', async () => {
    const orphan = await startRelay()
    const first = await fleet('compare --json')
    expect([first.code, differencesOf(first)]).toEqual([6, new Map([[orphan, ['foreign', 'waiting']]])])
    await service.api.sql`update instances set unowned_since = unowned_since - interval '1 minute'`
    const second = await fleet('compare')
    expect(second.stdout).toMatch(new RegExp(`${orphan} +foreign .*observed before +destroyed`))
    expect([second.code, second.stderr]).toEqual([0, 'Destroyed: 1.\n'])
    const third = await fleet('compare --json')
    expect([third.code, differencesOf(third)]).toEqual([0, new Map()])
  })

  test('destroys nothing when most instances seem to have no owner, unless it is forced', async () => {
    const api = await givenHetzner()
    const variables = {
      SVC_REGIONS: JSON.stringify([hetzner]),
      SVC_HETZNER_API_URL: api.apiUrl,
      SVC_HETZNER_TOKEN: api.token,
      SVC_FLEET_NAME: 'production',
    }
    for (let count = 0; count < 5; count += 1) await createServer(variables)
    expect((await fleet('compare', variables)).code).toBe(6)
    await service.api.sql`update instances set unowned_since = unowned_since - interval '1 minute'`
    const blocked = await fleet('compare', variables)
    expect(blocked.stderr).toMatch(/^error: Blocked: eu\. .*svc fleet compare --force$/m)
    expect([blocked.code, api.project.servers().length]).toEqual([1, 5])
    const forced = await fleet('compare --force', variables)
    expect(forced.stderr).toBe('Destroyed: 5.\n')
    expect([forced.code, api.project.servers().length]).toEqual([0, 0])
  })

  test('prints stable addresses that nothing uses, and leaves their release to the job', async () => {
    const api = await givenHetzner()
    const region = { ...hetzner, stable_address: true }
    const variables = {
      SVC_REGIONS: JSON.stringify([region]),
      SVC_HETZNER_API_URL: api.apiUrl,
      SVC_HETZNER_TOKEN: api.token,
      SVC_FLEET_NAME: 'production',
    }
    const { relays } = createHetznerRelays(api, {
      region: hetznerRegion('eu', {}, { stable_address: true }),
      fleetName: 'production',
    })
    const { instanceId, endpoint } = await relays.create(relaySpec(), new AbortController().signal)
    await relays.destroy(instanceId)

    const seen = await fleet('compare --dry-run', variables)
    const [address] = seen.stdout.split('\n').filter((line) => line.includes(endpoint.host))
    expect(address).toMatch(new RegExp(`${instanceId} .*unused_address .*waits for a second observation`))
    expect(await service.api.sql`select from relay_addresses`).toHaveLength(0)

    expect((await fleet('compare', variables)).code).toBe(6)
    expect((await fleet('compare', variables)).stdout).toMatch(/unused_address .*left for the next run/)
    expect(await service.api.sql`select from relay_addresses`).toHaveLength(1)
    expect(api.project.addresses()).toHaveLength(1)
  })

  test('reports a region that cannot be listed, and goes on with the others', async () => {
    const orphan = await startRelay()
    const { code, stdout, stderr } = await fleet('compare', {
      SVC_REGIONS: JSON.stringify([...local, hetzner]),
      SVC_HETZNER_API_URL: 'http://127.0.0.1:1',
      SVC_HETZNER_TOKEN: 'a'.repeat(64),
    })
    expect(stdout).toMatch(/^eu +- +- +\d+\.\d +failed: Hetzner could not be reached/m)
    expect(stderr).toMatch(/^error: Not compared: eu\. .*svc fleet check$/m)
    expect([code, stdout.includes(orphan), (stdout + stderr).includes('aaaa')]).toEqual([1, true, false])
  })
})

/** Creates a server with the tags of this service, of which the database knows nothing. */
async function createServer(variables: { SVC_HETZNER_API_URL: string; SVC_HETZNER_TOKEN: string }): Promise<void> {
  const instanceId = createInstanceId('hetzner')
  const reply = await fetch(`${variables.SVC_HETZNER_API_URL}/servers`, {
    method: 'POST',
    headers: { authorization: `Bearer ${variables.SVC_HETZNER_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: instanceId,
      ...hetzner.hetzner,
      labels: { 'svc-instance': instanceId, 'svc-region': 'eu', 'svc-session': '', 'svc-fleet': 'production' },
    }),
  })
  expect(reply.status).toBe(201)
}

describe('status', () => {
  test('shows each region with its instances and its last check', async () => {
    const user = await service.user()
    await user.start({ region: 'here' })
    await insertInstance({ is_warm: true, launched_at: new Date(), last_report_at: new Date() })
    await insertInstance({ is_warm: true })
    await insertInstance({ unowned_since: minutesAgo(1) })
    await insertInstance({ region: 'mars' })
    await recordProviderCheck(service.api.sql, 'here', null)
    await recordProviderCheck(service.api.sql, 'there', 'aws.image_id: EC2 shows no image')
    const { code, stdout, stderr } = await runSvc(['fleet', 'status'], environmentOf())
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^REGION +PROVIDER +CAPACITY +SESSIONS +BOUND +WARM READY\/BOOTING\/WANTED +LEFTOVER +ORPHANS +DRAINED SINCE/,
    )
    const time = '2\\S+ \\S+ UTC'
    expect(stdout).toMatch(new RegExp(`^here +local +5 +1 +0 +1/1/2 +1 +1 +- +\\S+@\\S+ +ok at ${time} +-$`, 'm'))
    expect(stdout).toMatch(
      new RegExp(`^there .* 0/0/0 +0 +0 +- +\\S+ +failing since ${time} +aws\\.image_id: EC2 shows no image$`, 'm'),
    )
    expect(stderr).toMatch(/not in SVC_REGIONS: mars \(1\)/)
    const { regions } = JSON.parse((await fleet('status --json')).stdout)
    expect(regions[0]).toMatchObject({
      region: 'here',
      instances: { warm_ready: 1, warm_booting: 1, warm_wanted: 2, leftover: 1, orphans: 1 },
      check_error: null,
    })
  })
})

test('check names the region whose credentials are wrong, and no secret', async () => {
  const api = await givenHetzner()
  const SVC_REGIONS = JSON.stringify([...local, hetzner])
  const variables = { SVC_REGIONS, SVC_HETZNER_API_URL: api.apiUrl, SVC_FLEET_NAME: 'production' }
  const wrong = 'w'.repeat(64)
  const failed = await fleet('check', { ...variables, SVC_HETZNER_TOKEN: wrong })
  expect(failed.stdout).toMatch(/^here +local +ok\nthere +local +ok\neu +hetzner +.*SVC_HETZNER_TOKEN/m)
  expect([failed.code, failed.stdout.includes(wrong), failed.stderr]).toEqual([1, false, 'error: Failed: eu.\n'])
  const works = await fleet('check', { ...variables, SVC_HETZNER_TOKEN: api.token })
  expect([works.code, works.stderr]).toEqual([0, ''])
  expect(works.stdout).toMatch(/^REGION +PROVIDER +RESULT\nhere +local +ok\nthere +local +ok\neu +hetzner +ok\n$/)
})

test('check names the region whose relays cannot bind their address, and what to set', async () => {
  const [here, there] = local
  const { code, stdout } = await fleet('check', {
    SVC_REGIONS: JSON.stringify([here, { ...there, host: '203.0.113.7', public_host: 'relay.example.com' }]),
  })
  expect(stdout).toMatch(
    /^here +local +ok\nthere +local +.*203\.0\.113\.7 is no address of this machine .*set host to/m,
  )
  expect(code).toBe(1)
})

test('an error in the configuration is printed, and ends the command with exit code 2', async () => {
  const { code, stdout, stderr } = await fleet('status', { SVC_REGIONS: `[{"region":"${randomUUID()}"}]` })
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toMatch(/SVC_REGIONS/)
})

test('without a stack and without the variables of the worker, both ways out are named, with exit code 2', async () => {
  const { code, stderr } = await runSvcHere(['fleet', 'status'])
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(/^error: No stack is running in .* \(npm start\), or set DATABASE_URL/),
  ])
})
