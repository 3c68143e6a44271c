/** The worker's program and `svc` while a fleet gets its name, with a relay that was created before. */
import { expect, test } from 'vitest'
import { startControlPlane } from '../support/control-plane.ts'
import { givenHetzner } from '../support/hetzner.ts'
import { runSvc } from '../support/svc.ts'

const patience = { timeout: 30_000 }

test('a worker without a name warns, one with a name waits for svc fleet adopt, and no relay is lost or kept', async () => {
  const cloud = await givenHetzner()
  const hetzner = { location: 'fsn1', server_type: 'cx22', image: 'debian-13' }
  const { environment, worker, paidUser } = await startControlPlane({
    LOG_LEVEL: 'info',
    SVC_REGIONS: JSON.stringify([
      { region: 'eu', display_name: 'Europe', provider: 'hetzner', default: true, hetzner },
    ]),
    SVC_HETZNER_API_URL: cloud.apiUrl,
    SVC_HETZNER_TOKEN: cloud.token,
    SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '300',
  })
  await expect.poll(worker.output, patience).toContain('the worker accepts work')
  expect(worker.output()).toContain('SVC_FLEET_NAME is not set')
  const user = await paidUser()
  expect((await user.start()).status).toBe(201)
  await expect.poll(() => cloud.project.servers().length, patience).toBe(1)
  await worker.stop()

  worker.start({ SVC_FLEET_NAME: 'production' })
  await expect.poll(worker.output, patience).toContain('svc fleet adopt --name production')
  await worker.stop()
  expect(worker.output().split('the worker accepts work')).toHaveLength(2)

  const adopted = await runSvc(['fleet', 'adopt', '--name', 'production'], environment)
  expect(adopted).toMatchObject({ code: 0, stderr: expect.stringContaining('Adopted by production: 1.') })
  const checked = await runSvc(['fleet', 'check'], { ...environment, SVC_FLEET_NAME: 'production' })
  expect(checked).toEqual({ code: 0, stdout: expect.stringMatching(/^eu +hetzner +ok$/m), stderr: '' })

  worker.start()
  await expect.poll(() => worker.output().split('the worker accepts work').length, patience).toBe(3)
  expect(worker.output().split('SVC_FLEET_NAME is not set')).toHaveLength(2)
  expect(cloud.project.servers()).toHaveLength(1)
  expect((await user.stop()).status).toBe(200)
  await expect.poll(() => cloud.project.servers().length, patience).toBe(0)
})
