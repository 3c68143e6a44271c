/** The commands of svc for relay sessions. */
import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { type FakeRelayService, startFakeRelayService } from '../../support/fake-relays.ts'
import { eventually } from '../../support/relays.ts'
import { longRelayTimeouts } from '../../support/subscribers.ts'
import { operatorVariables, runSvcHere, startSvc, svcOf } from '../../support/svc.ts'

let service: FakeRelayService
let svc: ReturnType<typeof svcOf>
beforeAll(async () => {
  service = await startFakeRelayService({ variables: longRelayTimeouts })
  svc = svcOf(service.api.url)
})

const startRelay = async () => {
  const user = await service.user()
  const { session_id: id } = await service.startActiveRelay(user)
  return { user, id }
}

test('sessions are listed by state, region and account', async () => {
  const { user, id } = await startRelay()
  expect(await svc('sessions', 'list', '--user', user.email, '--state', 'active')).toMatch(
    new RegExp(`^SESSION .*\\n${id} +active +relay_ready .*\\n$`),
  )
  expect((await svc('sessions', 'list', '--user', user.userId, '--state', 'stopped')).split('\n')).toHaveLength(2)
  expect((await svc('sessions', 'list', '--user', user.userId, '--region', 'elsewhere')).split('\n')).toHaveLength(2)
})

test('a session is shown with its transitions and what its workflow says', async () => {
  const { id } = await startRelay()
  const text = await svc('sessions', 'show', id)
  expect(text).toMatch(/^workflow says +active \(relay_ready\)$/m)
  expect(text).toMatch(/ provisioning +active +relay_ready +relay$/m)
})

test('a session that does not exist ends with exit code 3', async () => {
  const { code } = await runSvcHere(['sessions', 'show', randomUUID()], operatorVariables(service.api.url))
  expect(code).toBe(3)
})

test('a session is disconnected, with the reason in the audit trail', async () => {
  const { user, id } = await startRelay()
  const text = await svc('sessions', 'disconnect', id, '--reason', 'ticket 4711')
  expect(text).toMatch(/^state +stopped \(force_disconnected\)$/m)
  expect(await svc('audit', '--user', user.userId, '--action', 'session_disconnected')).toContain('reason=ticket 4711')
})

test('a transition is made by hand, and one that is not legal is refused with exit code 1', async () => {
  const { id } = await startRelay()
  const refused = await runSvcHere(
    ['sessions', 'transition', id, '--to', 'provisioning'],
    operatorVariables(service.api.url),
  )
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('409 invalid_transition') })
  expect(await svc('sessions', 'transition', id, '--to', 'grace')).toMatch(/^state +grace /m)
})

test('watching prints a line for each change, and Ctrl-C ends it with exit code 0', async () => {
  const { user, id } = await startRelay()
  const words = ['sessions', 'watch', '--user', user.email, '--interval', '1']
  const { child, stdout, ended } = await startSvc(words, operatorVariables(service.api.url))
  const untilOutput = (text: RegExp) => eventually(stdout, (output) => text.test(output))
  await untilOutput(new RegExp(`${id} +active `))
  await user.stop({ session_id: id, immediate: true })
  await untilOutput(new RegExp(`${id} +stopped +\\S+ +stop_requested`))
  child.kill('SIGINT')
  expect(await ended).toMatchObject({ code: 0, stderr: '' })
  expect(stdout().match(new RegExp(`${id} +active `, 'g'))).toHaveLength(1)
})

test('watching one session ends by itself when the session has stopped', async () => {
  const { user, id } = await startRelay()
  const words = ['sessions', 'watch', id, '--interval', '1', '--json']
  const { stdout, ended } = await startSvc(words, operatorVariables(service.api.url))
  await eventually(stdout, (output) => output.includes('"active"'))
  await user.stop({ session_id: id, immediate: true })
  expect((await ended).code).toBe(0)
  const states = stdout()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).state)
  expect([states[0], states.at(-1)]).toEqual(['active', 'stopped'])
})
