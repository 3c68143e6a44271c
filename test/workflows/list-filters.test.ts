/** The filters of docs/operating.md, used on a server with workflows. */
import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import * as messages from '../../workflows/messages.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { eventually } from '../support/relays.ts'
import { longRelayTimeouts, newPaidSubscriber, type Subscriber, subscriptionHandle } from '../support/subscribers.ts'

/** The filters for lists of workflows that docs/operating.md has, by their first words. */
const page = await readFile(new URL('../../docs/operating.md', import.meta.url), 'utf8')
const [, section = ''] = page.split('**Filters.**')
const filters = [...(section.split('\n## ')[0] ?? '').matchAll(/^\| (?<what>[^|]+) \| `(?<query>[^`]+)` \|$/gm)].map(
  ({ groups }) => [groups?.what ?? '', groups?.query ?? ''] as const,
)

let service: FakeRelayService
let subscribers: Record<'streaming' | 'pastDue' | 'cancelled' | 'terminated', Subscriber>
let sessions: Record<'provisioning' | 'grace' | 'stopped' | 'active', string>
let allowDestruction = () => {}
const isDestructionAllowed = new Promise<void>((resolve) => {
  allowDestruction = resolve
})

beforeAll(async () => {
  service = await startFakeRelayService({
    variables: { ...longRelayTimeouts, SVC_RELAY_STOP_GRACE_SECONDS: '600' },
  })
  const { destroy } = service.relayProvider
  Object.assign(service.relayProvider, {
    destroy: async (instanceId: string, providerId: string | null) => {
      await isDestructionAllowed
      return destroy(instanceId, providerId)
    },
  })
  subscribers = {
    streaming: await newPaidSubscriber(service, { addons: 3 }),
    pastDue: await newPaidSubscriber(service),
    cancelled: await newPaidSubscriber(service),
    terminated: await newPaidSubscriber(service),
  }
  const { streaming, pastDue, cancelled, terminated } = subscribers
  await pastDue.sendEvent('payment.failed', { invoice_id: 'inv_2' })
  await pastDue.waitForPlan(({ planStatus }) => planStatus === 'past_due')
  await cancelled.sendEvent('subscription.cancelled', { period_end: new Date(Date.now() + 3_600_000).toISOString() })
  await cancelled.waitForPlan(({ planStatus }) => planStatus === 'cancelled')
  await subscriptionHandle(service, terminated).terminate('by an operator')

  const active = await service.startActiveRelay(streaming, { connection_id: 'default' })
  const inGrace = await streaming.startRelay()
  await streaming.stop({ session_id: inGrace.session_id })
  const stopped = await streaming.startRelay()
  await streaming.stop({ session_id: stopped.session_id, immediate: true })
  const provisioning = (await streaming.start({ connection_id: 'starting' })).body.session
  sessions = {
    provisioning: provisioning.session_id,
    grace: inGrace.session_id,
    stopped: stopped.session_id,
    active: active.session_id,
  }
  return allowDestruction
})

const session = (name: keyof typeof sessions) => messages.relaySessionWorkflowId(sessions[name])
const account = (name: keyof typeof subscribers) => messages.subscriptionWorkflowId(subscribers[name].userId)

/** What each filter finds of the workflows above, by the first words of its row. */
const expected: Readonly<Record<string, () => string[]>> = {
  'sessions that are stuck in provisioning': () => [session('provisioning')],
  'sessions in grace': () => [session('grace')],
  'stopped sessions': () => [session('stopped')],
  'all live sessions of a connection': () => [session('active')],
  'accounts in their payment grace period': () => [account('pastDue')],
  'accounts with a cancelled plan': () => [account('cancelled')],
  'accounts on the paid tier': () => [account('streaming'), account('pastDue'), account('cancelled')],
  'everything of an account': () => [
    account('streaming'),
    ...(['provisioning', 'grace', 'stopped', 'active'] as const).map(session),
  ],
  'workflows that ended by an operator': () => [account('terminated')],
}

async function list(query: string, time: number): Promise<string[]> {
  const { temporal, config } = service.api.services
  const text = query.replaceAll('TIME', new Date(time).toISOString()).replaceAll('USER', subscribers.streaming.userId)
  const found: string[] = []
  for await (const { workflowId } of temporal.workflow.list({
    query: `(${text}) AND TaskQueue = '${config.temporal.taskQueue}'`,
  }))
    found.push(workflowId)
  return found.toSorted()
}

describe('a filter of docs/operating.md finds the workflows that it names:', () => {
  test.for(filters)('%s', async ([what, query]) => {
    const [, wanted] = Object.entries(expected).find(([words]) => what.startsWith(words)) ?? []
    const workflowIds = wanted?.().toSorted()
    expect(workflowIds, `no expectation for ${what}`).toBeDefined()
    const found = await eventually(
      () => list(query, Date.now()),
      (ids) => ids.join() === workflowIds?.join(),
    ).catch(() => list(query, Date.now()))
    expect(found).toEqual(workflowIds)
  })

  test('each expectation belongs to one of them', () => {
    const unused = Object.keys(expected).filter((words) => !filters.some(([what]) => what.startsWith(words)))
    expect(unused).toEqual([])
  })

  test('a session that began less than five minutes ago is not stuck', async () => {
    const [, query = ''] = filters.find(([what]) => what.includes('stuck in provisioning')) ?? []
    expect(await list(query, Date.now() - 300_000)).toEqual([])
  })
})
