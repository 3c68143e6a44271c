/** The fleet after the database was restored: instances that were created after the backup are in no row. */
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { createLog } from '../../../platform/log.ts'
import { createInstanceId } from '../../../providers/relay/instance-secrets.ts'
import { createLocalRelayProvider } from '../../../providers/relay/local.ts'
import { endLocalRelays } from '../../../providers/relay/local-relays.ts'
import { testEnvironment } from '../../support/environment.ts'
import { relaySpec } from '../../support/hetzner.ts'
import { startService, type TestService } from '../../support/relays.ts'
import { runSvcHere } from '../../support/svc.ts'

const SVC_REGIONS = JSON.stringify([{ region: 'here', display_name: 'Here', provider: 'local' }])

let service: TestService
let restores = 0
beforeAll(async () => {
  service = await startService({ worker: false, variables: { SVC_REGIONS } })
})
beforeEach(async () => {
  restores += 1
  await endLocalRelays(service.dataDir)
  await service.api.sql`delete from instances`
})

/** Runs the command after the operator has changed the epoch. */
const fleet = (words: string) =>
  runSvcHere(
    ['fleet', ...words.split(' ')],
    testEnvironment({
      DATABASE_URL: service.api.services.config.database.url,
      SVC_DATA_DIR: service.dataDir,
      SVC_REGIONS,
      SVC_EPOCH: `restore-${restores}`,
    }),
  )
const outcomesOf = ({ stdout }: { readonly stdout: string }) =>
  (
    JSON.parse(stdout) as {
      readonly regions: readonly { readonly differences: readonly { instance_id: string; outcome: string }[] }[]
    }
  ).regions.flatMap(({ differences }) => differences.map(({ instance_id, outcome }) => [instance_id, outcome]))

const passMinute = () => service.api.sql`update instances set unowned_since = unowned_since - interval '1 minute'`

/** A relay that no row knows, and that reports to no control plane. */
async function startUnknownRelay(): Promise<string> {
  const relays = createLocalRelayProvider({ dataDir: service.dataDir, log: createLog('test', 'silent') })
  const instanceId = createInstanceId('local')
  const spec = relaySpec({ instanceId, region: 'here', apiUrl: 'http://127.0.0.1:1', healthIntervalSeconds: 1 })
  await relays.create(spec, new AbortController().signal)
  return instanceId
}

test('an instance that the database does not know is kept for a day from a new epoch on, and check names it', async () => {
  const instanceId = await startUnknownRelay()
  expect(outcomesOf(await fleet('compare --json'))).toEqual([[instanceId, 'earlier_epoch']])
  await passMinute()
  const kept = await fleet('compare')
  expect(kept.stdout).toMatch(new RegExp(`${instanceId} .*kept until 2\\S+ \\S+ UTC, since it may carry a stream`))
  expect([kept.code, kept.stderr]).toEqual([0, 'Destroyed: 0.\n'])
  const { stderr, code } = await fleet('check')
  expect(stderr).toMatch(
    new RegExp(`^here: kept until 2\\S+ \\S+ UTC, .*restored: ${instanceId}\\. To destroy them`, 'm'),
  )
  expect(code).toBe(0)
  const { regions } = JSON.parse((await fleet('check --json')).stdout)
  expect(regions).toMatchObject([{ region: 'here', kept: { instance_ids: [instanceId] } }])

  await service.api.sql`update epochs set began_at = began_at - interval '24 hours'`
  expect(outcomesOf(await fleet('compare --json'))).toEqual([[instanceId, 'destroyed']])
  expect(await fleet('check')).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringMatching(/^here +local +ok$/m),
  })
})

test('one that reports without a session carries no stream, and is destroyed', async () => {
  const instanceId = await startUnknownRelay()
  await fleet('compare')
  await passMinute()
  const headers = { 'X-Relay-Auth': service.api.services.config.relayAuthSecrets[0] ?? '' }
  const reply = await service.api.post('/relay/health', { session_id: null, instance_id: instanceId }, { headers })
  expect(reply.status).toBe(200)
  expect(outcomesOf(await fleet('compare --json'))).toEqual([[instanceId, 'destroyed']])
})

test('an operator can destroy it at once', async () => {
  const instanceId = await startUnknownRelay()
  await fleet('compare')
  await passMinute()
  expect(outcomesOf(await fleet('compare --force --dry-run --json'))).toEqual([[instanceId, 'due']])
  expect(outcomesOf(await fleet('compare --force --json'))).toEqual([[instanceId, 'destroyed']])
})

test('an orphan of the present epoch is destroyed as always', async () => {
  await fleet('compare')
  const instanceId = await startUnknownRelay()
  await service.api.sql`
    insert into instances (instance_id, region, provider, launched_at, unowned_since)
    values (${instanceId}, 'here', 'local', now(), now() - interval '2 minutes')`
  expect(outcomesOf(await fleet('compare --json'))).toEqual([[instanceId, 'destroyed']])
})
