/** The Temporal server and its namespace. */
import { type Client, isGrpcServiceError } from '@temporalio/client'
import { connectTemporal, searchAttributes, type TemporalConfig } from '../../platform/temporal.ts'
import { combine, type Finding, fail, notChecked, type Problem, warn } from './check.ts'
import type { Target } from './target.ts'

const callMillisMax = 5000
/** Ended workflows are readable for this long at least, so that an operator can examine a failure of the day before. */
const retentionSecondsMin = 86_400

/** A client that all checks share, or why there is none. */
export interface TemporalAccess {
  readonly client: Client | undefined
  /** Undefined when the server answers. */
  readonly obstacle: Promise<string | undefined>
  close(): Promise<void>
}

/** Connects at once. */
export function openTemporal(config: TemporalConfig | undefined): TemporalAccess {
  if (!config)
    return {
      client: undefined,
      obstacle: Promise.resolve('TEMPORAL_ADDRESS is missing or wrong'),
      close: async () => {},
    }
  const { client, close } = connectTemporal(config)
  const obstacle = callTemporal(client, () => client.workflowService.getSystemInfo({})).then(
    () => undefined,
    (error: unknown) => `Temporal at ${config.address} does not answer: ${describe(error)}`,
  )
  return { client, obstacle, close }
}

export async function checkTemporal(
  { temporal, running }: Target,
  { client, obstacle }: TemporalAccess,
): Promise<Finding> {
  if (!temporal || !client) return notChecked('TEMPORAL_ADDRESS is missing or wrong')
  const problem = await obstacle
  if (problem === undefined) return checkNamespace(client, temporal)
  const isEmbedded = running?.servers.TEMPORAL_ADDRESS === temporal.address
  const fix = isEmbedded
    ? 'Run npm start again. Its log is temporal/temporal.log in the data folder.'
    : 'Start Temporal, or correct TEMPORAL_ADDRESS and the TEMPORAL_TLS variables.'
  return fail(problem, fix)
}

/** Limited in time. */
export const callTemporal = <Value>(client: Client, work: () => Promise<Value>): Promise<Value> =>
  client.withDeadline(Date.now() + callMillisMax, work)

async function checkNamespace(client: Client, { address, namespace }: TemporalConfig): Promise<Finding> {
  const { serverVersion } = await callTemporal(client, () => client.workflowService.getSystemInfo({}))
  const found = await callTemporal(client, () => client.workflowService.describeNamespace({ namespace })).catch(
    (error: unknown) => {
      if (isGrpcServiceError(error) && error.code === 5) return undefined
      throw error
    },
  )
  const server = `Temporal ${serverVersion} at ${address}`
  if (!found)
    return fail(
      `${server} has no namespace ${namespace}`,
      `Create it: temporal operator namespace create --retention 72h ${namespace} (or correct TEMPORAL_NAMESPACE).`,
    )
  const retentionSeconds = Number(found.config?.workflowExecutionRetentionTtl?.seconds ?? 0)
  return combine(`${server}, namespace ${namespace}, ended workflows are kept for ${retentionSeconds / 3600} h`, [
    retentionSeconds < retentionSecondsMin &&
      warn(
        `the namespace ${namespace} keeps ended workflows for ${retentionSeconds / 3600} h only`,
        `Raise it: temporal operator namespace update --retention 72h ${namespace}`,
      ),
    await findSearchAttributeProblem(client, namespace),
  ])
}

async function findSearchAttributeProblem(client: Client, namespace: string): Promise<Problem | undefined> {
  const { connection } = client
  const operatorService = 'operatorService' in connection ? connection.operatorService : undefined
  if (!operatorService) return undefined
  const { customAttributes } = await callTemporal(client, () => operatorService.listSearchAttributes({ namespace }))
  const missing = searchAttributes.filter((name) => !Object.hasOwn(customAttributes, name))
  if (missing.length === 0) return undefined
  const options = missing.map((name) => `--name ${name} --type Keyword`).join(' ')
  return fail(
    `the namespace lacks the search attributes ${missing.join(', ')}, without which no workflow starts`,
    `Add them: temporal operator search-attribute create --namespace ${namespace} ${options}`,
  )
}

function describe(error: unknown): string {
  if (!isGrpcServiceError(error)) return (error as Error).message
  return error.code === 4 ? `no reply within ${callMillisMax / 1000} s` : error.details || error.message
}
