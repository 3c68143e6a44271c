/** The doctor's check of the task queue: workers, and a current version. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { runChecks } from '../../../cli/doctor/check.ts'
import { readTarget } from '../../../cli/doctor/target.ts'
import { checkTaskQueue } from '../../../cli/doctor/task-queue.ts'
import { openTemporal } from '../../../cli/doctor/temporal.ts'
import { testEnvironment } from '../../support/environment.ts'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { eventually } from '../../support/relays.ts'

const service = await startFakeRelayService({ worker: false })
const { temporal } = service.api.services
const { taskQueue } = service.api.services.config.temporal

async function examineQueue() {
  const target = await readTarget(testEnvironment({ SVC_TEMPORAL_TASK_QUEUE: taskQueue }))
  const access = openTemporal(target.temporal)
  try {
    const [result] = await runChecks([{ name: 'task-queue', run: () => checkTaskQueue(target, access) }])
    return result
  } finally {
    await access.close()
  }
}

test('a task queue needs workers, and versioned workers need a current version', async () => {
  expect(await examineQueue()).toMatchObject({
    name: 'task-queue',
    status: 'fail',
    detail: `no worker polls ${taskQueue} for workflow tasks; no worker polls ${taskQueue} for activity tasks`,
    fix: expect.stringContaining('npm run worker'),
  })

  const deploymentName = `test-${randomUUID()}`
  await service.startWorker({ deploymentName, buildId: 'v1' })
  const found = await eventually(examineQueue, (result) => !result?.detail.includes('no worker polls'))
  expect(found).toMatchObject({
    status: 'fail',
    detail: expect.stringContaining('all workers are versioned and no version is current, so no workflow starts'),
    fix: expect.stringContaining(`set-current-version --deployment-name ${deploymentName} --build-id v1`),
  })

  const version = { namespace: 'default', deploymentName, buildId: 'v1', identity: 'test' }
  await temporal.workflowService.setWorkerDeploymentCurrentVersion(version)
  expect(await eventually(examineQueue, (result) => result?.status === 'ok')).toMatchObject({
    detail: expect.stringMatching(new RegExp(`^pollers of ${taskQueue}: 1 \\(${deploymentName}:v1\\), waiting: `)),
    fix: null,
  })
})
