/** The relays that end with a plan or with add-ons. */
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import { statusAndCode } from '../support/api.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { suspendJob } from '../support/jobs.ts'
import { eventually } from '../support/relays.ts'
import {
  activeByRelay,
  addonSubscriptionId,
  disconnectedBySystem,
  findDisconnectTime,
  isFree,
  lastTransition,
  longRelayTimeouts,
  newPaidSubscriber,
  type Subscriber,
  waitForAppliedEvents,
  waitForDisconnect,
  waitForRest,
} from '../support/subscribers.ts'

const noticeSeconds = 3600
let service: FakeRelayService
beforeAll(async () => {
  const variables = { ...longRelayTimeouts, SVC_ADDON_NOTICE_SECONDS: String(noticeSeconds) }
  service = await startFakeRelayService({ variables })
  // It wakes workflows that missed a deadline. Here each of them has to meet its deadlines itself.
  await suspendJob(service.api.sql, 'wake_subscriptions')
})

const instancesOf = async (session: SessionView) => service.relayProvider.list({ sessionId: session.session_id })
const lastTransitions = (relays: readonly SessionView[]) =>
  Promise.all(relays.map((relay) => lastTransition(service, relay)))

describe.concurrent('the end of a plan', () => {
  test('also ends a relay that is provisioning, and its instance', async () => {
    const subscriber = await newPaidSubscriber(service)
    const { session } = (await subscriber.start()).body
    await eventually(
      () => instancesOf(session),
      (instances) => instances.length === 1,
    )
    await subscriber.sendEvent('subscription.downgraded')
    await waitForDisconnect(service, session)
    await eventually(
      () => instancesOf(session),
      (instances) => instances.length === 0,
    )
  })

  test('leaves no relay of a start at the same moment running', async () => {
    const started = await Promise.all(
      Array.from({ length: 6 }, async (_, index) => {
        const subscriber = await newPaidSubscriber(service)
        const downgraded = sleep(index % 2 === 0 ? 0 : index * 10).then(() =>
          subscriber.sendEvent('subscription.downgraded'),
        )
        const answer = await sleep(index % 2 === 0 ? index * 10 : 0).then(() => subscriber.start())
        await downgraded
        await subscriber.waitForPlan(isFree)
        return { subscriber, answer }
      }),
    )
    for (const { subscriber, answer } of started) {
      if (answer.status === 201) await waitForDisconnect(service, answer.body.session)
      else expect(statusAndCode(answer)).toEqual([403, 'relay_access_denied'])
      expect((await subscriber.active()).sessions).toEqual([])
      expect((await subscriber.start()).status).toBe(403)
    }
  })

  test('follows a full refund at once, and no partial one', async () => {
    const subscriber = await newPaidSubscriber(service)
    const relay = await subscriber.startRelay()
    await subscriber.sendEvent('payment.refunded', { invoice_id: 'inv_1', amount: 'partial' })
    await waitForAppliedEvents(service, subscriber)
    expect(await lastTransition(service, relay)).toEqual(activeByRelay)
    await subscriber.sendEvent('payment.refunded', { invoice_id: 'inv_1', amount: 'full' })
    await subscriber.waitForPlan(isFree)
    await waitForDisconnect(service, relay)
  })
})

/** Starts all relays that the plan includes. The oldest is the first. */
async function startRelays(addons: number): Promise<{ subscriber: Subscriber; relays: SessionView[] }> {
  const subscriber = await newPaidSubscriber(service, { addons })
  const relays: SessionView[] = []
  for (let count = 0; count < 1 + addons; count += 1) relays.push(await subscriber.startRelay())
  return { subscriber, relays }
}

const changeAddons = async (subscriber: Subscriber, quantity: number) => {
  await subscriber.sendEvent('addon.updated', { subscription_id: addonSubscriptionId(subscriber), quantity })
  return subscriber.waitForPlan((plan) => plan.addons === quantity)
}

/** Moves the end of the account's notice, if there is one, as if it had begun earlier. */
async function endNoticeAt({ userId }: Subscriber, at: Date): Promise<void> {
  await service.api.sql`
    update users set surplus_ends_at = ${at} where id = ${userId} and surplus_ends_at is not null`
  await service.api.services.subscriptions.wake(userId)
}

/** Lets the whole notice pass. Resolves when the workflow has decided. */
async function passNotice(subscriber: Subscriber): Promise<void> {
  await endNoticeAt(subscriber, new Date())
  await waitForRest(service, subscriber)
}

describe.concurrent('a smaller number of add-ons', () => {
  test('ends the newest surplus relays after a notice, and leaves the others on their instances', async () => {
    const { subscriber, relays } = await startRelays(3)
    const began = Date.now()
    const { surplusEndsAt: noticeEndsAt } = await changeAddons(subscriber, 1)
    expect(noticeEndsAt?.getTime()).toBeGreaterThanOrEqual(began + noticeSeconds * 1000 - 50)
    await waitForRest(service, subscriber)
    expect(await lastTransitions(relays)).toEqual([activeByRelay, activeByRelay, activeByRelay, activeByRelay])
    const endsAt = new Date(Date.now() + 1500)
    await endNoticeAt(subscriber, endsAt)
    for (const relay of relays.slice(2)) {
      await waitForDisconnect(service, relay)
      expect(await findDisconnectTime(service, relay)).toBeGreaterThanOrEqual(endsAt.getTime())
    }
    expect(await lastTransitions(relays)).toEqual([
      activeByRelay,
      activeByRelay,
      disconnectedBySystem,
      disconnectedBySystem,
    ])
    const left = (await subscriber.active()).sessions
    expect(new Set(left.map(({ instance_id }) => instance_id))).toEqual(
      new Set(relays.slice(0, 2).map(({ instance_id }) => instance_id)),
    )
    expect(await subscriber.fetchPlan()).toMatchObject({ surplusEndsAt: null, entitlementDueAt: null })
  })

  test('refuses new starts at once, and the restart of a relay that is stopping', async () => {
    const { subscriber, relays } = await startRelays(1)
    await changeAddons(subscriber, 0)
    expect(statusAndCode(await subscriber.start({ connection_id: 'third' }))).toEqual([403, 'relay_limit_reached'])
    const [oldest] = relays
    await subscriber.stop({ session_id: oldest?.session_id })
    const again = await subscriber.start({ connection_id: oldest?.connection_id })
    expect(statusAndCode(again)).toEqual([403, 'relay_limit_reached'])
  })

  test('ends no relay if the number is raised again within the notice', async () => {
    const { subscriber, relays } = await startRelays(1)
    await changeAddons(subscriber, 0)
    expect(await changeAddons(subscriber, 1)).toMatchObject({ surplusEndsAt: null, entitlementDueAt: null })
    await passNotice(subscriber)
    expect(await lastTransitions(relays)).toEqual([activeByRelay, activeByRelay])
  })

  test('ends no further relay if enough relays were stopped within the notice, including older ones', async () => {
    const { subscriber, relays } = await startRelays(1)
    await changeAddons(subscriber, 0)
    await subscriber.stop({ session_id: relays[0]?.session_id, immediate: true })
    await eventually(
      () => lastTransitions(relays),
      ([oldest]) => oldest?.[0] === 'stopped',
    )
    await passNotice(subscriber)
    expect(await subscriber.fetchPlan()).toMatchObject({ surplusEndsAt: null, entitlementDueAt: null })
    expect((await lastTransitions(relays))[1]).toEqual(activeByRelay)
  })

  test('ends all relays at once if the plan ends as well', async () => {
    const { subscriber, relays } = await startRelays(1)
    await changeAddons(subscriber, 0)
    await subscriber.sendEvent('subscription.downgraded')
    for (const relay of relays) await waitForDisconnect(service, relay)
    expect(await subscriber.fetchPlan()).toMatchObject({ planTier: 'free', surplusEndsAt: null })
  })

  test('starts a new notice with each further decrease', async () => {
    const { subscriber, relays } = await startRelays(2)
    await changeAddons(subscriber, 1)
    const first = new Date(Date.now() + 600_000)
    await endNoticeAt(subscriber, first)
    await waitForRest(service, subscriber)
    expect(await subscriber.fetchPlan()).toMatchObject({ surplusEndsAt: first })
    const began = Date.now()
    const { surplusEndsAt: second } = await changeAddons(subscriber, 0)
    expect(second?.getTime()).toBeGreaterThanOrEqual(began + noticeSeconds * 1000 - 50)
    await passNotice(subscriber)
    for (const relay of relays.slice(1)) await waitForDisconnect(service, relay)
    expect(await lastTransitions(relays)).toEqual([activeByRelay, disconnectedBySystem, disconnectedBySystem])
  })
})
