/**
 * What Temporal stores of the settings of a session: its history is shown to everybody who may open the Temporal UI.
 */
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import { expect, test } from 'vitest'
import { relaySessionWorkflowId } from '../../workflows/messages.ts'
import { startFakeRelayService } from '../support/fake-relays.ts'
import { longRelayTimeouts } from '../support/subscribers.ts'

test('the history of a session contains its time limits and no other setting of the relays', async () => {
  const service = await startFakeRelayService({
    variables: { ...longRelayTimeouts, SVC_RELAY_SRT_PASSPHRASE: 'a-passphrase-of-relays', PATH: '/opt/private/bin' },
  })
  const { session_id: sessionId } = await service.startActiveRelay(await service.user())
  const handle = service.api.services.temporal.workflow.getHandle(relaySessionWorkflowId(sessionId))
  const history = JSON.parse(historyToJSON(await handle.fetchHistory()))
  const payloads: unknown[] = []
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    if ('data' in value && typeof value.data === 'string')
      payloads.push(JSON.parse(Buffer.from(value.data, 'base64').toString() || 'null'))
    for (const nested of Object.values(value)) collect(nested)
  }
  collect(history)
  const settings = payloads.flatMap((payload) => (payload as { settings?: object } | null)?.settings ?? [])
  expect(settings.length).toBeGreaterThan(0)
  for (const each of settings)
    expect(each).toEqual({
      provisionTimeoutSeconds: 300,
      healthTimeoutSeconds: 300,
      replacementSeconds: 0,
      graceSeconds: 5,
      stopGraceSeconds: 3,
      maxSessionSeconds: 57_600,
    })
  expect(JSON.stringify(payloads)).not.toMatch(/\/opt\/private|a-passphrase/)
})
