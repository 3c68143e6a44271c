/** The task queue that connects workflows with workers, and the versions of the workers. */
import type { Client } from '@temporalio/client'
import type { TemporalConfig } from '../../platform/temporal.ts'
import { combine, type Finding, fail, notChecked, type Problem, warn } from './check.ts'
import type { Target } from './target.ts'
import { callTemporal, type TemporalAccess } from './temporal.ts'

/** Tasks that wait for longer mean that workers are too few, or stuck. */
const backlogSecondsMax = 60
const kinds = { workflow: 1, activity: 2 } as const

export const startWorkerFix =
  'Start a worker (npm run worker, or npm start), and see its log (logs/worker.log in the data folder of npm start).'

export const checkTaskQueue = async ({ temporal }: Target, { client, obstacle }: TemporalAccess): Promise<Finding> =>
  (await obstacle) === undefined && temporal && client
    ? checkQueue(client, temporal)
    : notChecked('Temporal does not answer')

interface Version {
  readonly deploymentName: string
  readonly buildId: string
}

type Queue = Awaited<ReturnType<typeof readQueue>>

async function checkQueue(client: Client, config: TemporalConfig): Promise<Finding> {
  const queues = await Promise.all(
    Object.entries(kinds).map(([kind, taskQueueType]) => readQueue(client, config, kind, taskQueueType)),
  )
  const pollers = queues.flatMap((queue) => queue.pollers)
  const workers = new Set(pollers.map(({ identity }) => identity)).size
  const versions = new Set(pollers.flatMap(({ version }) => (version ? [formatVersion(version)] : [])))
  const tasks = queues.map(({ kind, waitingTasks }) => `${waitingTasks} ${kind} tasks`).join(' and ')
  const named = versions.size === 0 ? '' : ` (${[...versions].sort().join(', ')})`
  return combine(
    `pollers of ${config.taskQueue}: ${workers}${named}, waiting: ${tasks}`,
    queues.flatMap((queue) => findProblems(queue, config.taskQueue)),
  )
}

async function readQueue(
  client: Client,
  { namespace, taskQueue }: TemporalConfig,
  kind: string,
  taskQueueType: number,
) {
  const { pollers, stats, versioningInfo } = await callTemporal(client, () =>
    client.workflowService.describeTaskQueue({
      namespace,
      taskQueue: { name: taskQueue },
      taskQueueType,
      reportStats: true,
    }),
  )
  return {
    kind,
    // One for each connection of a worker; without a version for an unversioned worker.
    pollers: pollers.map(({ identity, deploymentOptions }) => ({
      identity: identity ?? '',
      version: toVersion(deploymentOptions),
    })),
    // Gets the tasks of new workflows; undefined when unversioned workers do.
    current: toVersion(versioningInfo?.currentDeploymentVersion),
    waitingTasks: Number(stats?.approximateBacklogCount ?? 0),
    oldestSeconds: Number(stats?.approximateBacklogAge?.seconds ?? 0),
  }
}

const toVersion = (
  version: { readonly deploymentName?: string | null; readonly buildId?: string | null } | null | undefined,
): Version | undefined =>
  version?.buildId ? { deploymentName: version.deploymentName ?? '', buildId: version.buildId } : undefined

const formatVersion = ({ deploymentName, buildId }: Version): string => `${deploymentName}:${buildId}`

function findProblems({ kind, pollers, current, oldestSeconds }: Queue, taskQueue: string) {
  if (pollers.length === 0) return [fail(`no worker polls ${taskQueue} for ${kind} tasks`, startWorkerFix)]
  return [
    findVersionProblem(pollers, current),
    oldestSeconds > backlogSecondsMax &&
      warn(`the oldest ${kind} task has waited for ${oldestSeconds} s`, 'Start more workers, or see their log.'),
  ]
}

/** New workflows go to the current version, and to unversioned workers when there is none. */
function findVersionProblem(pollers: Queue['pollers'], current: Version | undefined): Problem | undefined {
  const isServed = pollers.some(({ version }) => version?.buildId === current?.buildId)
  if (isServed) return undefined
  const [running] = pollers.flatMap(({ version }) => version ?? [])
  const command = running
    ? `temporal worker deployment set-current-version --deployment-name ${running.deploymentName} --build-id ${running.buildId}`
    : `temporal worker deployment set-current-version --deployment-name ${current?.deploymentName} --unversioned`
  const fix = `direct them to the workers that run: ${command} (docs/operating.md, Worker versions).`
  if (!current)
    return fail(
      'all workers are versioned and no version is current, so no workflow starts',
      `Choose a version, and ${fix}`,
    )
  const detail = `no worker of the current version ${formatVersion(current)} runs, so no workflow starts`
  return fail(detail, `Start workers of that version, or ${fix}`)
}
