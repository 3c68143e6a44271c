import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type RelayProvider, RelayProviderError } from '../../providers/relay/provider.ts'
import { eventually, type RelayUser, relayProcesses, startService, type TestService } from '../support/relays.ts'

/** The provider of the current test: the real one with one failing call. */
let behaviour: Partial<RelayProvider> & { real: RelayProvider }
let service: TestService
let user: RelayUser

beforeAll(async () => {
  service = await startService({
    variables: { SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '4' },
    around: (real) => {
      behaviour = { real }
      const call = (name: keyof RelayProvider) => (behaviour[name] ?? real[name]) as (...args: unknown[]) => never
      return {
        create: (...args) => call('create')(...args),
        describe: (...args) => call('describe')(...args),
        destroy: (...args) => call('destroy')(...args),
        list: (...args) => call('list')(...args),
      }
    },
  })
})

beforeEach(async () => {
  behaviour = { real: behaviour.real }
  user = await service.user()
})

const started = async () => (await user.start()).body.session.session_id
const untilStopped = (sessionId: string) =>
  eventually(
    () => service.history(sessionId),
    ({ session }) => session.state === 'stopped',
  ).then(({ session }) => session)
const nothingIsLeft = async (sessionId: string) => {
  await eventually(
    () => service.relaysOf(sessionId).length,
    (count) => count === 0,
  )
  await eventually(
    async () =>
      (await service.api.sql`select from instances where session_id = ${sessionId} and gone_at is null`).count,
    (count) => count === 0,
  )
}

describe('provisioning', () => {
  test('that the provider refuses permanently ends stopped at once', async () => {
    behaviour.create = async () => {
      throw new RelayProviderError('no such image', true)
    }
    const sessionId = await started()
    expect(await untilStopped(sessionId)).toMatchObject({ reason: 'provision_failed' })
    await nothingIsLeft(sessionId)
  })

  test('that fails once is retried and becomes active', async () => {
    let tries = 0
    behaviour.create = (spec, signal) => {
      tries += 1
      return tries === 1 ? Promise.reject(new RelayProviderError('busy')) : behaviour.real.create(spec, signal)
    }
    const sessionId = await started()
    await eventually(
      () => service.history(sessionId),
      ({ session }) => session.state === 'active',
    )
    expect(service.relaysOf(sessionId)).toHaveLength(1)
  })

  test('whose reply is lost adopts the instance instead of creating another', async () => {
    let tries = 0
    behaviour.create = async (spec, signal) => {
      tries += 1
      const instance = await behaviour.real.create(spec, signal)
      if (tries === 1) throw new RelayProviderError('the connection was lost')
      return instance
    }
    const sessionId = await started()
    await eventually(
      () => service.history(sessionId),
      ({ session }) => session.state === 'active',
    )
    expect(tries).toBe(2)
    expect(service.relaysOf(sessionId)).toHaveLength(1)
  })

  test('that loses every reply and fails leaves no instance', async () => {
    behaviour.create = async (spec, signal) => {
      await behaviour.real.create(spec, signal)
      throw new RelayProviderError('the connection was lost', true)
    }
    const sessionId = await started()
    expect(await untilStopped(sessionId)).toMatchObject({ reason: 'provision_failed' })
    await nothingIsLeft(sessionId)
  })

  test('that hangs ends at its deadline without an instance', async () => {
    behaviour.create = async (spec, signal) => {
      await behaviour.real.create(spec, signal)
      return new Promise(() => {})
    }
    const sessionId = await started()
    // The relay runs and reports, but it is never bound to the session.
    expect(await untilStopped(sessionId)).toMatchObject({ reason: 'provision_timeout' })
    await nothingIsLeft(sessionId)
  })

  test('that is stopped while the provider creates the instance ends stopped without a relay process', async () => {
    behaviour.create = async (spec, signal) => {
      await sleep(800)
      return behaviour.real.create(spec, signal)
    }
    const sessionId = await started()
    await sleep(300)
    const { body } = await user.stop({ session_id: sessionId })
    expect(body.session).toMatchObject({ state: 'stopped', reason: 'stop_requested' })
    await sleep(1500)
    await nothingIsLeft(sessionId)
    const { transitions } = await service.history(sessionId)
    expect(transitions).toMatchObject([{ from: 'provisioning', to: 'stopped', reason: 'stop_requested' }])
  })

  test('that is stopped while the provider hangs is stopped at once, and its instance is destroyed', async () => {
    let isMade = false
    behaviour.create = async (spec, signal) => {
      await behaviour.real.create(spec, signal)
      isMade = true
      return new Promise(() => {})
    }
    const sessionId = await started()
    await eventually(() => isMade, Boolean)
    const { body } = await user.stop({ session_id: sessionId })
    expect(body.session.state).toBe('stopped')
    await nothingIsLeft(sessionId)
  })
})

describe('destroying', () => {
  test('is retried until the provider confirms that nothing is left', async () => {
    const { session } = await service.activeRelay(user)
    let tries = 0
    // The relay ends itself when its report is answered with stop, but only the provider's confirmation counts.
    behaviour.list = (filter) => {
      tries += 1
      return tries < 3 ? Promise.reject(new RelayProviderError('busy')) : behaviour.real.list(filter)
    }
    const { body } = await user.stop({ session_id: session.session_id, immediate: true })
    expect(body.session.state).toBe('stopped')
    await nothingIsLeft(session.session_id)
    expect(tries).toBeGreaterThanOrEqual(3)
  })

  test('an orphan happens only after two runs a minute apart', async () => {
    const foreign = await behaviour.real.create(
      {
        sessionId: crypto.randomUUID(),
        region: 'local',
        streamToken: 'abcd1234',
        apiUrl: 'http://127.0.0.1:9',
        relayAuthSecret: 'x'.repeat(32),
        healthIntervalSeconds: 10,
        capMbps: 48,
      },
      new AbortController().signal,
    )
    const sweep = async () => {
      const before = await runsOfSweep()
      await service.api.sql`update jobs set due_at = now() where name = 'sweep_orphans'`
      await eventually(runsOfSweep, (runs) => runs > before)
    }
    const runsOfSweep = async () =>
      Number((await service.api.sql`select runs from jobs where name = 'sweep_orphans'`)[0]?.runs)
    const isThere = () => relayProcesses(service.dataDir).some((relay) => relay.sessionId === foreign.sessionId)
    await eventually(
      async () => (await service.api.sql`select from jobs where name = 'sweep_orphans' and runs > 0`).count,
      (count) => count === 1,
    )
    await sweep()
    await sweep()
    expect(isThere()).toBe(true)
    await service.api
      .sql`update instances set unowned_since = unowned_since - interval '61 seconds' where instance_id = ${foreign.instanceId}`
    behaviour.list = () => Promise.reject(new RelayProviderError('half an answer'))
    await sweep()
    expect(isThere()).toBe(true)
    delete behaviour.list
    await sweep()
    await eventually(isThere, (there) => !there)
  })
})
