/** The list of instances in the operator console. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { recordObservations } from '../../../db/fleet/orphans.ts'
import { markup, signedInOperator } from '../../support/operator-console.ts'
import { operatorPassword } from '../../support/relays.ts'
import { startApiAndSite } from '../../support/site.ts'

const { api, site } = await startApiAndSite({ api: { SVC_OPERATOR_PASSWORD: operatorPassword } })
const browser = await signedInOperator(site)

const idsOf = async (query: string) => (await browser.open(`/operator/instances${query}`)).data('instance')

async function writeInstance(region: string, isGone = false): Promise<string> {
  const id = `instance-${randomUUID()}`
  await api.sql`
    insert into instances (instance_id, region, gone_at) values (${id}, ${region}, ${isGone ? new Date() : null})`
  return id
}

test('existing instances are shown, and gone ones on request', async () => {
  const [here, gone] = [await writeInstance('first'), await writeInstance('first', true)]
  expect(await idsOf('?region=first')).toEqual([here])
  expect(await idsOf('?region=first&show=gone')).toEqual([gone])
  expect((await idsOf('?region=first&show=all')).toSorted()).toEqual([gone, here].toSorted())
  expect(await idsOf('?show=anything&region=first')).toEqual([here])
  expect(await idsOf(`?show=all&instance_id=${gone}`)).toEqual([gone])
})

test('orphans are shown with their use', async () => {
  const id = `orphan-${randomUUID()}`
  await writeInstance('second')
  const listed = [{ instanceId: id, sessionId: null }]
  await recordObservations(api.sql, { region: 'second', listed, listLagSeconds: 0 })
  for (const query of ['?region=second&show=orphans', '?region=second&orphans=true']) {
    const page = await browser.open(`/operator/instances${query}`)
    expect([page.data('instance'), page.data('use')]).toEqual([[id], ['orphan']])
  }
})

test('the capacity of each region is shown, and the list has pages', async () => {
  await api.sql`
    insert into instances (instance_id, region, created_at)
    select 'page-' || n, 'paged', now() - make_interval(secs => n) from generate_series(1, 101) n`
  const first = await browser.open('/operator/instances?region=paged')
  expect(first.data('region')).toEqual(['local'])
  expect(first.data('instance')).toHaveLength(100)
  const next = first.links.find((link) => link.includes('cursor=')) ?? ''
  expect((await browser.open(next.replaceAll('&amp;', '&'))).data('instance')).toEqual(['page-101'])
})

test('texts of providers are shown as text', async () => {
  await api.sql`
    insert into instances (instance_id, region, provider_id, image) values (${markup}, ${markup}, ${markup}, ${markup})`
  const page = await browser.open(`/operator/instances?region=${encodeURIComponent(markup)}`)
  expect(page.text).toContain(markup)
  expect(page.html).not.toContain('<img')
})
