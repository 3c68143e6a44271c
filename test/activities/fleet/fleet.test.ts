import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type FleetResult, runFleetCommand } from '../../../activities/fleet/commands.ts'
import { recordProviderCheck } from '../../../db/operations/provider-checks.ts'
import { nodeArguments } from '../../../platform/launcher.ts'
import { createLog } from '../../../platform/log.ts'
import { createInstanceId } from '../../../providers/relay/instance-secrets.ts'
import { createLocalRelayProvider } from '../../../providers/relay/local.ts'
import { endLocalRelays } from '../../../providers/relay/local-relays.ts'
import { testEnvironment } from '../../support/environment.ts'
import { givenHetzner, relaySpec } from '../../support/hetzner.ts'
import { startService, type TestService } from '../../support/relays.ts'

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

type Run = FleetResult

const environmentOf = (variables: Readonly<Record<string, string>>) =>
  testEnvironment({
    DATABASE_URL: service.api.services.config.database.url,
    SVC_DATA_DIR: service.dataDir,
    SVC_REGIONS: JSON.stringify(local),
    ...variables,
  })

/** Runs the command with the configuration of the service, in this process. */
const fleet = (words: string, variables: Readonly<Record<string, string>> = {}): Promise<Run> =>
  runFleetCommand(words.split(' '), environmentOf(variables))

const project = fileURLToPath(new URL('../../..', import.meta.url))

/** The same with the program. */
function runFleetProgram(words: string, variables: Readonly<Record<string, string>> = {}): Promise<Run> {
  const env = { PATH: process.env.PATH, ...environmentOf(variables) }
  const args = [...nodeArguments('activities/fleet/fleet.ts'), ...words.split(' ')]
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: project, env }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr })
    })
  })
}

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
interface Reconciliation {
  readonly regions: readonly { region: string; listed: number; blocked: boolean; differences: readonly Difference[] }[]
}
const differencesOf = ({ stdout }: Run) => {
  const [here] = (JSON.parse(stdout) as Reconciliation).regions
  return new Map(here?.differences.map((one) => [one.instance_id, [one.kind, one.outcome]]))
}

describe('reconcile', () => {
  test('prints one line per difference in a dry run, and changes neither rows nor instances', async () => {
    const foreign = await startRelay()
    const retired = await startRelay(await insertInstance({ retired_at: new Date(), unowned_since: new Date() }))
    const orphan = await startRelay(await insertInstance({ unowned_since: minutesAgo(2), launched_at: minutesAgo(5) }))
    const unbound = await startRelay(await insertInstance({ is_warm: true, launched_at: new Date() }))
    const missing = await insertInstance({ created_at: minutesAgo(9), launched_at: minutesAgo(9) })
    const before = await readRows()
    const { code, stdout } = await fleet('reconcile --dry-run')
    const lineOf = (instanceId: string) => stdout.split('\n').filter((line) => line.includes(instanceId))
    expect(lineOf(foreign)).toEqual([
      expect.stringMatching(/foreign.*first observation.*waits for a second observation/),
    ])
    expect(lineOf(retired)).toEqual([expect.stringMatching(/retired .*would be destroyed/)])
    expect(lineOf(orphan)).toEqual([expect.stringMatching(/orphan .*observed before .*would be destroyed/)])
    expect(lineOf(unbound)).toEqual([expect.stringMatching(/unbound .*kept/)])
    expect(lineOf(missing)).toEqual([expect.stringMatching(/missing .*would count as gone/)])
    expect(stdout).toMatch(/^here: 4 listed, 5 different from the stored ones, in \d+\.\d s$/m)
    expect(stdout).toMatch(/^Waiting for a second observation: 1\. Run this again 60 s after/m)
    expect(stdout).toMatch(/^Dry run: nothing was changed\.$/m)
    expect(code).toBe(2)
    expect(await readRows()).toEqual(before)
    expect(differencesOf(await fleet('reconcile --dry-run --json')).size).toBe(5)
  })

  test('destroys an orphan with its second observation, and then finds no difference', async () => {
    const orphan = await startRelay()
    const first = await fleet('reconcile --json')
    expect([first.code, differencesOf(first)]).toEqual([2, new Map([[orphan, ['foreign', 'waiting']]])])
    await service.api.sql`update instances set unowned_since = unowned_since - interval '1 minute'`
    const second = await fleet('reconcile')
    expect(second.stdout).toMatch(new RegExp(`${orphan} +foreign .*observed before +destroyed`))
    expect([second.code, second.stdout.includes('Destroyed: 1.')]).toEqual([0, true])
    const third = await fleet('reconcile --json')
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
    expect((await fleet('reconcile', variables)).code).toBe(2)
    await service.api.sql`update instances set unowned_since = unowned_since - interval '1 minute'`
    const blocked = await fleet('reconcile', variables)
    expect(blocked.stdout).toMatch(/^Blocked: eu\. .*npm run fleet -- reconcile --force$/m)
    expect([blocked.code, api.project.servers().length]).toEqual([1, 5])
    const forced = await fleet('reconcile --force', variables)
    expect(forced.stdout).toMatch(/^Destroyed: 5\.$/m)
    expect([forced.code, api.project.servers().length]).toEqual([0, 0])
  })

  test('reports a region that cannot be listed, and goes on with the others', async () => {
    const orphan = await startRelay()
    const { code, stdout } = await fleet('reconcile', {
      SVC_REGIONS: JSON.stringify([...local, hetzner]),
      SVC_HETZNER_API_URL: 'http://127.0.0.1:1',
      SVC_HETZNER_TOKEN: 'a'.repeat(64),
    })
    expect(stdout).toMatch(/^eu: failed after \d+\.\d s: Hetzner could not be reached/m)
    expect(stdout).toMatch(/^Not compared: eu\./m)
    expect([code, stdout.includes(orphan), stdout.includes('aaaa')]).toEqual([1, true, false])
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
    const { code, stdout } = await runFleetProgram('status')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^region +provider +capacity +sessions +bound +warm ready\/booting\/wanted +leftover +orphans/m,
    )
    expect(stdout).toMatch(/^here +local +5 +1 +0 +1\/1\/2 +1 +1 +no +\S+@\S+ +ok at 2\S+Z$/m)
    expect(stdout).toMatch(/^there +local +50 +0 +0 +0\/0\/0 +0 +0 +no +\S+ +failing since 2\S+Z$/m)
    expect(stdout).toMatch(/^there: aws\.image_id: EC2 shows no image$/m)
    expect(stdout).toMatch(/not in SVC_REGIONS: mars \(1\)/)
    const { regions } = JSON.parse((await fleet('status --json')).stdout)
    expect(regions[0]).toMatchObject({
      region: 'here',
      instances: { warm_ready: 1, warm_booting: 1, warm_wanted: 2, leftover: 1, orphans: 1 },
      check_error: null,
    })
  })
})

describe('drain and resume', () => {
  test('change a region as the operators do, and are audited without an address', async () => {
    const user = await service.user()
    await user.start({ region: 'there' })
    const drained = await fleet('drain there')
    expect(drained.stdout).toMatch(/^there takes no new sessions\. Live sessions that run on: 1\. .*resume there$/m)
    const { regions } = JSON.parse((await fleet('status --json')).stdout)
    expect(regions[1]).toMatchObject({ region: 'there', drained_at: expect.any(String) })
    const refused = await (await service.user()).start({ region: 'there' })
    expect(refused.status).toBe(503)
    expect((await fleet('resume there')).stdout).toMatch(/^there takes new sessions again/)
    expect((await (await service.user()).start({ region: 'there' })).status).toBe(201)
    const entries = await service.api.sql`
      select initiator, action, ip, detail from audit_entries where action like 'region_%' order by id`
    expect(entries).toEqual([
      { initiator: 'operator', action: 'region_drained', ip: null, detail: { region: 'there' } },
      { initiator: 'operator', action: 'region_resumed', ip: null, detail: { region: 'there' } },
    ])
  })

  test('refuse a region that does not exist, and name those that do', async () => {
    expect(await runFleetProgram('drain mars')).toEqual({
      code: 64,
      stdout: '',
      stderr: 'mars is not a region. The regions of SVC_REGIONS are: here, there.\n',
    })
    expect(await service.api.sql`select from regions`).toHaveLength(0)
  })
})

test('check names the region whose credentials are wrong, and no secret', async () => {
  const api = await givenHetzner()
  const SVC_REGIONS = JSON.stringify([...local, hetzner])
  const variables = { SVC_REGIONS, SVC_HETZNER_API_URL: api.apiUrl, SVC_FLEET_NAME: 'production' }
  const wrong = 'w'.repeat(64)
  const failed = await fleet('check', { ...variables, SVC_HETZNER_TOKEN: wrong })
  expect(failed.stdout).toMatch(/^here \(local\): ok\nthere \(local\): ok\neu \(hetzner\): .*SVC_HETZNER_TOKEN/)
  expect([failed.code, failed.stdout.includes(wrong), failed.stderr]).toEqual([1, false, ''])
  const works = await fleet('check', { ...variables, SVC_HETZNER_TOKEN: api.token })
  expect([works.code, works.stdout]).toEqual([0, 'here (local): ok\nthere (local): ok\neu (hetzner): ok\n'])
})

test('check names the region whose relays cannot bind their address, and what to set', async () => {
  const [here, there] = local
  const { code, stdout } = await fleet('check', {
    SVC_REGIONS: JSON.stringify([here, { ...there, host: '203.0.113.7', public_host: 'relay.example.com' }]),
  })
  expect(stdout).toMatch(
    /^here \(local\): ok\nthere \(local\): .*203\.0\.113\.7 is no address of this machine .*set host to/,
  )
  expect(code).toBe(1)
})

test('an error in the configuration is printed, and ends the command', async () => {
  const { code, stdout, stderr } = await runFleetProgram('status', { SVC_REGIONS: `[{"region":"${randomUUID()}"}]` })
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(/SVC_REGIONS/)
})
