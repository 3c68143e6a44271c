/** The provisioning of an instance: refusals, retries, deadlines, clean-up. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createInstanceId } from '../../providers/relay/instance-secrets.ts'
import { type RelayProvider, RelayProviderError } from '../../providers/relay/provider.ts'
import { runJob } from '../support/jobs.ts'
import { eventually, type RelayUser, relayProcesses, startService, type TestService } from '../support/relays.ts'
import { startWithInput } from '../support/short-history.ts'
import { longRelayTimeouts } from '../support/subscribers.ts'

/** The provider of the current test: the real one with one failing call. */
let provider: Partial<RelayProvider> & { real: RelayProvider }
let service: TestService
let user: RelayUser

beforeAll(async () => {
  service = await startService({
    variables: longRelayTimeouts,
    around: (real) => {
      provider = { real }
      const call = (name: keyof RelayProvider) => (provider[name] ?? real[name]) as (...args: unknown[]) => never
      return {
        ...real,
        create: (...args) => call('create')(...args),
        describe: (...args) => call('describe')(...args),
        destroy: (...args) => call('destroy')(...args),
        list: (...args) => call('list')(...args),
      }
    },
  })
})

beforeEach(async () => {
  provider = { real: provider.real }
  user = await service.user()
})

const startSession = async () => (await user.start()).body.session.session_id
const untilStopped = (sessionId: string) =>
  eventually(
    () => service.history(sessionId),
    ({ session }) => session.state === 'stopped',
  ).then(({ session }) => session)
const untilNothingIsLeft = async (sessionId: string) => {
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
    provider.create = async () => {
      throw new RelayProviderError('no such image', 'give_up', { detail: 'configuration' })
    }
    const sessionId = await startSession()
    expect(await untilStopped(sessionId)).toMatchObject({ reason: 'provision_failed' })
    const [row] = await service.api.sql`select detail from relay_sessions where id = ${sessionId}`
    expect(row?.detail).toBe('configuration')
    await untilNothingIsLeft(sessionId)
  })

  test('that fails once is retried and becomes active', async () => {
    let attempts = 0
    provider.create = (spec, signal) => {
      attempts += 1
      return attempts === 1 ? Promise.reject(new RelayProviderError('busy')) : provider.real.create(spec, signal)
    }
    const sessionId = await startSession()
    await eventually(
      () => service.history(sessionId),
      ({ session }) => session.state === 'active',
    )
    expect(service.relaysOf(sessionId)).toHaveLength(1)
  })

  test('whose reply is lost adopts the instance instead of creating another', async () => {
    let attempts = 0
    provider.create = async (spec, signal) => {
      attempts += 1
      const instance = await provider.real.create(spec, signal)
      if (attempts === 1) throw new RelayProviderError('the connection was lost')
      return instance
    }
    const sessionId = await startSession()
    await eventually(
      () => service.history(sessionId),
      ({ session }) => session.state === 'active',
    )
    expect(attempts).toBe(2)
    expect(service.relaysOf(sessionId)).toHaveLength(1)
  })

  test('that loses every reply and fails leaves no instance', async () => {
    provider.create = async (spec, signal) => {
      await provider.real.create(spec, signal)
      throw new RelayProviderError('the connection was lost', 'give_up')
    }
    const sessionId = await startSession()
    expect(await untilStopped(sessionId)).toMatchObject({ reason: 'provision_failed' })
    await untilNothingIsLeft(sessionId)
  })

  test('that hangs ends at its deadline without an instance', async () => {
    provider.create = async (spec, signal) => {
      await provider.real.create(spec, signal)
      return new Promise(() => {})
    }
    const settings = { ...service.api.services.config.relay, provisionTimeoutSeconds: 2 }
    const sessionId = await startWithInput(service.api, user, { settings })
    // The relay runs and reports, but it is never bound to the session.
    expect(await untilStopped(sessionId)).toMatchObject({ reason: 'provision_timeout' })
    await untilNothingIsLeft(sessionId)
  })

  test('that is stopped while the provider creates the instance ends stopped without a relay process', async () => {
    let [hasBegun, hasEnded] = [false, false]
    let proceed = () => {}
    const mayProceed = new Promise<void>((resolve) => {
      proceed = resolve
    })
    provider.create = async (spec, signal) => {
      hasBegun = true
      await mayProceed
      return provider.real.create(spec, signal).finally(() => {
        hasEnded = true
      })
    }
    const sessionId = await startSession()
    await eventually(() => hasBegun, Boolean)
    const { body } = await user.stop({ session_id: sessionId })
    expect(body.session).toMatchObject({ state: 'stopped', reason: 'stop_requested' })
    proceed()
    await eventually(() => hasEnded, Boolean)
    await untilNothingIsLeft(sessionId)
    const { transitions } = await service.history(sessionId)
    expect(transitions).toMatchObject([{ from: 'provisioning', to: 'stopped', reason: 'stop_requested' }])
  })

  test('that is stopped while the provider hangs is stopped at once, and its instance is destroyed', async () => {
    let isCreated = false
    provider.create = async (spec, signal) => {
      await provider.real.create(spec, signal)
      isCreated = true
      return new Promise(() => {})
    }
    const sessionId = await startSession()
    await eventually(() => isCreated, Boolean)
    const { body } = await user.stop({ session_id: sessionId })
    expect(body.session.state).toBe('stopped')
    await untilNothingIsLeft(sessionId)
  })
})

describe('the destruction of instances', () => {
  test('is retried until the provider lists none of the session', async () => {
    const { session } = await service.activeRelay(user)
    let attempts = 0
    // The relay ends itself when its report is answered with stop, but only the provider's confirmation counts.
    provider.list = (filter) => {
      attempts += 1
      return attempts < 3 ? Promise.reject(new RelayProviderError('busy')) : provider.real.list(filter)
    }
    const { body } = await user.stop({ session_id: session.session_id, immediate: true })
    expect(body.session.state).toBe('stopped')
    await untilNothingIsLeft(session.session_id)
    expect(attempts).toBeGreaterThanOrEqual(3)
  })

  test('reaches an orphan only after two sweeps a minute apart', async () => {
    const orphan = await provider.real.create(
      {
        instanceId: createInstanceId('local'),
        sessionId: crypto.randomUUID(),
        zone: 0,
        region: 'local',
        streamTokenHash: { key: 'k'.repeat(43), hash: 'h'.repeat(43) },
        apiUrl: 'http://127.0.0.1:9',
        relayAuthSecret: 'x'.repeat(32),
        healthIntervalSeconds: 10,
        capMbps: 48,
        engine: 'none',
      },
      new AbortController().signal,
    )
    const sweepOrphans = () => runJob(service.api.sql, 'sweep_orphans')
    const isRunning = () => relayProcesses(service.dataDir).some((relay) => relay.sessionId === orphan.sessionId)
    await sweepOrphans()
    await sweepOrphans()
    expect(isRunning()).toBe(true)
    await service.api
      .sql`update instances set unowned_since = unowned_since - interval '61 seconds' where instance_id = ${orphan.instanceId}`
    provider.list = () => Promise.reject(new RelayProviderError('the list is incomplete'))
    await sweepOrphans()
    expect(isRunning()).toBe(true)
    delete provider.list
    await sweepOrphans()
    await eventually(isRunning, (running) => !running)
  })
})
