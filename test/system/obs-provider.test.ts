/**
 * The OBS source from end to end with `npm start`: it signs in with the address of the site, lists, resolves, and OBS
 * plays the address that it got, also over sessions and until the app is disconnected.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, vi } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { IrlSourceClient } from '../support/irl-source-client.ts'
import { removeInput } from '../support/obs-inputs.ts'
import { signIn, visitor, waitForPage } from './browser.ts'
import { type ObsService, startObsService } from './obs-service.ts'
import { testInRealTime } from './real-time.ts'

vi.setConfig({ testTimeout: 300_000 })

let service: ObsService
beforeAll(async () => {
  service = await startObsService()
}, 180_000)

const readDemo = async () => {
  const text = await readFile(join(service.dataDir, 'secrets.json'), 'utf8')
  return (JSON.parse(text) as { demo: { email: string; password: string } }).demo
}

testInRealTime('OBS plays the address that the source got, over sessions, until the app is disconnected', async () => {
  const { page, faults } = await visitor()
  const client = new IrlSourceClient(service.siteUrl())
  const startedAt = performance.now()
  await client.signIn(async (url) => {
    await page.goto(url)
    await signIn(page, await readDemo())
    await waitForPage(page, 'connect')
    await page.locator('form[action$="/approve"] button').click()
  })
  const ingests = await client.list()
  expect(ingests).toMatchObject([{ name: 'default', online: false, bitrateKbps: 0 }])
  const id = ingests[0]?.id ?? ''
  const url = await client.resolve(id)
  const watch = await service.play(url)
  let stream = await service.publish()
  try {
    await watch.untilFresh(Date.now(), 30)
    process.stdout.write(`[obs] sign-in to picture: ${((performance.now() - startedAt) / 1000).toFixed(1)} s\n`)
    const online = await eventually(client.list.bind(client), ([ingest]) => ingest?.online === true)
    expect(online[0]?.bitrateKbps).toBeGreaterThan(0)

    await stream.stop()
    await service.stop()
    expect([await client.resolve(id), (await client.list())[0]?.id]).toEqual([url, id])
    await service.start()
    stream = await service.publish()
    await watch.untilMadeAfter(Date.now(), 60)

    await page.goto(`${service.siteUrl()}/account/apps`)
    await page.locator('a[href$="/disconnect"]').click()
    await page.locator('form[action$="/disconnect"] button').click()
    await waitForPage(page, 'account-apps')
    const disconnectedAt = Date.now()
    await expect(client.list()).rejects.toMatchObject({ outcome: 'signed_out' })
    const last = await eventually(
      async () => watch.figures(disconnectedAt).longestGapSeconds,
      (seconds) => seconds > 5,
    )
    expect(last).toBeGreaterThan(5)
    expect(faults).toEqual([])
  } finally {
    await stream.stop()
    await watch.end()
    await removeInput(service.obs, watch.inputName)
  }
})
