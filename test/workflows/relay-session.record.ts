/** Records the histories for the replay test: `npm run histories`. */
import { beforeAll, test } from 'vitest'
import { type RelayProvider, RelayProviderError } from '../../providers/relay/provider.ts'
import * as messages from '../../workflows/messages.ts'
import { recordHistory } from '../support/histories.ts'
import { eventually, freeze, type RelayUser, startService, type TestService } from '../support/relays.ts'
import { startWithShortHistory } from '../support/short-history.ts'

const regions = [
  { region: 'local', display_name: 'Local', provider: 'local', default: true },
  { region: 'warm', display_name: 'Warm', provider: 'local', warm: 1 },
]

let service: TestService
let user: RelayUser
let create: RelayProvider['create'] | undefined

beforeAll(async () => {
  service = await startService({
    variables: { SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '5', SVC_REGIONS: JSON.stringify(regions) },
    around: (real) => ({ ...real, create: (spec, signal) => (create ?? real.create)(spec, signal) }),
  })
})

const handleOf = (sessionId: string) =>
  service.api.services.temporal.workflow.getHandle(messages.relaySessionWorkflowId(sessionId))
const untilState = (sessionId: string, state: string) =>
  eventually(
    () => service.history(sessionId),
    ({ session }) => session.state === state,
  )

const paths: Record<string, () => Promise<string>> = {
  'started-and-stopped': async () => {
    const { session } = await service.activeRelay(user)
    await user.stop({ session_id: session.session_id })
    return session.session_id
  },
  'stopped-at-once': async () => {
    const { session } = await service.activeRelay(user)
    await user.stop({ session_id: session.session_id, immediate: true })
    return session.session_id
  },
  'taken-back-from-stop': async () => {
    const { session } = await service.activeRelay(user)
    await user.stop({ session_id: session.session_id })
    await user.start()
    await user.stop({ session_id: session.session_id, immediate: true })
    return session.session_id
  },
  'stopped-while-provisioning': async () => {
    create = () => new Promise(() => {})
    const { session } = (await user.start()).body
    await user.stop({ session_id: session.session_id })
    return session.session_id
  },
  'provision-failed': async () => {
    create = () => Promise.reject(new RelayProviderError('no such image', 'give_up'))
    return (await user.start()).body.session.session_id
  },
  'provision-timeout': async () => {
    create = () => new Promise(() => {})
    return (await user.start()).body.session.session_id
  },
  'health-lost-and-restored': async () => {
    const { session } = await service.activeRelay(user)
    const frozen = freeze(service.relaysOf(session.session_id)[0] ?? 0)
    await untilState(session.session_id, 'grace')
    frozen.thaw()
    await untilState(session.session_id, 'active')
    await user.stop({ session_id: session.session_id, immediate: true })
    return session.session_id
  },
  'health-lost-for-good': async () => {
    const { session } = await service.activeRelay(user)
    process.kill(service.relaysOf(session.session_id)[0] ?? 0, 'SIGKILL')
    return session.session_id
  },
  'cancelled-by-operator': async () => {
    const { session } = await service.activeRelay(user)
    await handleOf(session.session_id).cancel()
    return session.session_id
  },
  restarted: async () => {
    const { session } = await service.activeRelay(user)
    await handleOf(session.session_id).terminate('lost')
    await service.api.sql`update jobs set due_at = now() where name = 'restart_workflows'`
    await eventually(
      () => handleOf(session.session_id).describe(),
      ({ status }) => status.name === 'RUNNING',
    )
    await user.stop({ session_id: session.session_id, immediate: true })
    return session.session_id
  },
  'started-on-a-warm-instance': async () => {
    await eventually(
      async () => (await service.api.sql`select from instances where is_warm and last_report_at is not null`).count,
      (ready) => ready > 0,
    )
    const { session } = (await user.start({ region: 'warm' })).body
    await untilState(session.session_id, 'active')
    await user.stop({ session_id: session.session_id, immediate: true })
    return session.session_id
  },
  'continued-as-new': async () => {
    const sessionId = await startWithShortHistory(service.api, user)
    await untilState(sessionId, 'active')
    await user.stop({ session_id: sessionId })
    for (let index = 0; index < 4; index += 1) await handleOf(sessionId).signal(messages.healthRestored)
    return sessionId
  },
}

test.for(Object.keys(paths))('%s', async (name) => {
  create = undefined
  user = await service.user()
  const sessionId = (await paths[name]?.()) ?? ''
  await untilState(sessionId, 'stopped')
  await eventually(
    () => handleOf(sessionId).describe(),
    ({ status }) => status.name === 'COMPLETED',
  )
  await recordHistory(messages.relaySessionWorkflowId(sessionId), name)
})
