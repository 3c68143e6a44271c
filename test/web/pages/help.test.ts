/** The pages below Help about OBS and scene switching. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { startApiDouble } from '../../support/api-double.ts'
import { startSite } from '../../support/site.ts'

const site = await startSite(await startApiDouble())

/** The figures of `npm run soak -- obs`, in seconds. */
async function provenSeconds(): Promise<ReadonlyMap<string, number>> {
  const file = await readFile(new URL('../../../docs/proof/obs.json', import.meta.url), 'utf8')
  return new Map((JSON.parse(file) as { name: string; ours: number }[]).map(({ name, ours }) => [name, ours]))
}

test('help leads to the pages about OBS and scene switching, which need neither a sign-in nor the API', async () => {
  const browser = site.browser()
  const help = await browser.open('/help')
  expect(help.links).toEqual(expect.arrayContaining(['/help/obs', '/help/scene-switching']))
  for (const [path, name] of [
    ['/help/obs', 'help-obs'],
    ['/help/scene-switching', 'help-scene-switching'],
  ] as const)
    expect(await browser.open(path, { from: 'cross-site' })).toMatchObject({ status: 200, name })
})

test('every link to a topic of these pages leads to one', async () => {
  const browser = site.browser()
  for (const path of ['/help', '/help/obs', '/help/scene-switching']) {
    for (const link of (await browser.open(path)).links) {
      const { pathname, hash } = new URL(link, `${site.url}${path}`)
      if (hash === '' || !pathname.startsWith('/help')) continue
      expect((await browser.open(pathname)).html, `${link} on ${path}`).toContain(` id="${hash.slice(1)}"`)
    }
  }
})

test('the measured times about OBS are within two seconds of the latest proof', async () => {
  const page = await site.browser().open('/help/obs')
  const [names, shown, proven] = [page.data('measured'), page.data('seconds'), await provenSeconds()]
  expect(names.length).toBeGreaterThanOrEqual(7)
  for (const [index, name] of names.entries())
    expect(Math.abs(Number(shown[index]) - (proven.get(name) ?? Number.NaN)), name).toBeLessThan(2)
})

test('the page about scene switching has a configuration of NOALBS for each type, in the path form', async () => {
  const page = await site.browser().open('/help/scene-switching')
  expect(page.data('server')).toEqual(['SrtLiveServer', 'Belabox', 'OpenIRL'])
  const samples = [...page.html.matchAll(/<pre class="code sample"[^>]*>(.*?)<\/pre>/gs)].map(([, text]) => text ?? '')
  const servers = samples.map((text) => JSON.parse(text.replaceAll('&quot;', '"')).streamServer)
  expect(servers.map(({ type }) => type)).toEqual(page.data('server'))
  for (const { type, statsUrl, publisher } of servers) {
    expect(new URL(statsUrl).pathname).toBe('/stats/PLAY_KEY')
    expect(publisher).toBe(type === 'OpenIRL' ? undefined : 'PLAY_KEY')
  }
})
