/** The form of the dashboards. `test/system/dashboards.test.ts` runs their queries. */
import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { readDashboards } from '../support/dashboards.ts'

const dashboards = await readDashboards()
const runbooks = await readdir(fileURLToPath(new URL('../../docs/runbooks', import.meta.url)))

test('there is a dashboard for the service, relays, billing and the SDK of Temporal', () => {
  expect(dashboards.map(({ name }) => name)).toEqual(['billing', 'relays', 'service', 'temporal'])
})

describe.each(dashboards.map((dashboard) => [dashboard.name, dashboard] as const))('%s', (name, { uid, panels }) => {
  const withQueries = panels.filter(({ type }) => type !== 'row')

  test('has the name of its file as its uid', () => {
    expect(uid).toBe(name)
  })

  test('reads all its panels from the data source with the uid prometheus', () => {
    const sources = withQueries.flatMap((panel) => [
      panel.datasource,
      ...(panel.targets ?? []).map(({ datasource }) => datasource),
    ])
    expect(new Set(sources.map((source) => source?.uid))).toEqual(new Set(['prometheus']))
  })

  test('has a title, a unit and a query in each panel, and a legend for each line', () => {
    for (const { title, type, fieldConfig, targets = [] } of withQueries) {
      expect(title).not.toBe('')
      expect(fieldConfig?.defaults.unit, title).toBeTruthy()
      expect(targets.length, title).toBeGreaterThan(0)
      if (type === 'timeseries') for (const { legendFormat } of targets) expect(legendFormat, title).not.toBe('')
    }
    const titles = panels.map(({ title }) => title)
    expect(titles).toEqual([...new Set(titles)])
  })

  test('links to runbooks that exist', () => {
    const links = withQueries
      .flatMap((panel) => panel.links ?? [])
      .map(({ url }) => url.replace(/^\$\{runbooks\}\//, ''))
    expect(links.length).toBeGreaterThan(0)
    for (const link of links) expect(runbooks).toContain(link)
  })
})
