/** A relay session whose workflow starts with an input of the test, for example to continue as new early. */
import { randomUUID } from 'node:crypto'
import { createRelaySessionTokens } from '../../api/relay-session-tokens.ts'
import { startRelay } from '../../db/transactions/start-relay.ts'
import { type RelaySessionInput, relaySessionWorkflow, relaySessionWorkflowId } from '../../workflows/messages.ts'
import type { GivenUser, TestApi } from './api.ts'

/**
 * Starts the session and returns its id. Its workflow continues as new after 30 events instead of about ten thousand.
 */
export const startWithShortHistory = (
  api: TestApi,
  user: Pick<GivenUser, 'userId' | 'authSessionId'>,
): Promise<string> => startWithInput(api, user, { historyEventsMax: 30 })

/**
 * Starts a session and returns its id.
 * @param changes of the input that the workflow would get.
 */
export async function startWithInput(
  { services }: TestApi,
  { userId, authSessionId }: Pick<GivenUser, 'userId' | 'authSessionId'>,
  { region = 'local', ...changes }: Partial<RelaySessionInput>,
): Promise<string> {
  const { config, sql, temporal } = services
  const outcome = await startRelay(sql, {
    userId,
    by: { authSessionId },
    idempotencyKey: randomUUID(),
    requestHash: Buffer.alloc(32),
    connectionId: 'default',
    region: { named: region },
    regions: config.regions,
    warmReportSecondsMax: 30,
    rateLimitKey: userId,
    rateLimit: 1000,
    timeBank: config.timeBank,
    networkHash: Buffer.alloc(32),
    ...createRelaySessionTokens(services.sealing),
  })
  if (outcome.type !== 'reserved') throw new Error(`expected the outcome reserved: ${outcome.type}`)
  const { session } = outcome
  const input: RelaySessionInput = {
    sessionId: session.id,
    userId,
    connectionId: 'default',
    region,
    createdAt: session.createdAt.getTime(),
    settings: config.relay,
    ...changes,
  }
  const workflowId = relaySessionWorkflowId(session.id)
  await temporal.workflow.start(relaySessionWorkflow, {
    taskQueue: config.temporal.taskQueue,
    workflowId,
    args: [input],
  })
  return session.id
}
