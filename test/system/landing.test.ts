/**
 * The public pages and the usage page in Chromium: accessible, without scripts, and without requests to other hosts.
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { useRelayTime } from '../support/relay-time.ts'
import { expectUsable, type Visitor, visitor, waitForPage } from './browser.ts'
import { startDashboard } from './streamers.ts'

const { api, url, streamer } = await startDashboard()

const open = async (path: string): Promise<Visitor> => {
  const person = await visitor({ device: 'phone' })
  await person.page.goto(url + path)
  return person
}

/** With all questions and steps open. */
const openAll = async (path: string): Promise<Visitor> => {
  const person = await open(path)
  for (const summary of await person.page.locator('main summary').all()) await summary.click()
  return person
}

const pages: Readonly<Record<string, () => Promise<Visitor>>> = {
  landing: () => open('/'),
  'landing-questions': () => openAll('/'),
  help: () => open('/help'),
  'help-apps': () => openAll('/help'),
  'help-obs': () => open('/help/obs'),
  'help-scene-switching': () => open('/help/scene-switching'),
  status: () => open('/status'),
  'status-incidents': async () => {
    await api.sql`
      insert into incidents (region, part, kind, began_at, confirmed_at, ended_at, note, noted_at) values
        (null, 'api', 'part_outage', now() - interval '40 days', now(), now() - interval '39 days', null, null),
        ('local', 'starts', 'starts_failing', now() - interval '1 hour', now(), null, ${'A long word: '.padEnd(90, 'x')}, now())`
    onTestFinished(async () => void (await api.sql`delete from incidents`))
    const person = await visitor({ device: 'phone' })
    await eventually(
      async () => {
        await person.page.goto(`${url}/status`)
        return person.page.locator('[data-incident]').count()
      },
      (count) => count === 2,
    )
    return person
  },
  'usage-none': async () => {
    const person = await streamer({ device: 'phone' })
    await api.sql`update users set plan_tier = 'free', plan_status = 'none', addons = 0 where id = ${person.user.userId}`
    await person.page.goto(`${url}/usage`)
    return person
  },
  usage: async () => {
    const person = await streamer({ device: 'phone' })
    const { userId } = person.user
    await api.sql`
      update users set period_start = now() - interval '20 days', period_end = now() + interval '10 days' where id = ${userId}`
    for (let day = 0; day < 18; day++) await useRelayTime(api.sql, userId, 3600 + day * 500, day)
    await person.page.goto(`${url}/usage`)
    await person.page.locator('main summary').click()
    return person
  },
  'plan-free': async () => {
    const person = await streamer({ device: 'phone' })
    await api.sql`update users set plan_tier = 'free', plan_status = 'none', addons = 0 where id = ${person.user.userId}`
    await person.page.goto(`${url}/account`)
    return person
  },
}

test.for(Object.keys(pages))('the page %s is accessible and fits small phones', async (name) => {
  const person = await pages[name]?.()
  if (!person) throw new Error(`there is no page ${name}`)
  await expectUsable(person, name)
})

describe('without a script', () => {
  test('the landing page leads to an account, and its questions open', async () => {
    const { page } = await visitor({ device: 'phone', script: false })
    await page.goto(url)
    await waitForPage(page, 'landing')
    const question = page.locator('details').first()
    await question.locator('summary').click()
    expect(await question.locator('p').isVisible()).toBe(true)
    await page.locator('main a[href="/sign-up"]').first().click()
    await waitForPage(page, 'sign-up')
  })
})

test('the keyboard reaches the first button of the landing page, and opens it', async () => {
  const { page } = await visitor()
  await page.goto(url)
  const focused = () => page.evaluate('document.activeElement.getAttribute("href")')
  const visited: unknown[] = []
  for (let presses = 0; presses < 6; presses++) {
    await page.keyboard.press('Tab')
    visited.push(await focused())
  }
  expect(visited).toEqual(['#main', '/', '/login', '/sign-up', '/sign-up', '#how'])
  await page.locator('main a[href="/sign-up"]').first().focus()
  await page.keyboard.press('Enter')
  await waitForPage(page, 'sign-up')
})

test.for(['/', '/help', '/status', '/usage', '/account'])('%s requests nothing from another host', async (path) => {
  const { page } = await streamer()
  if (path === '/') await page.context().clearCookies()
  const hosts = new Set<string>()
  page.on('request', (request) => hosts.add(new URL(request.url()).host))
  await page.goto(url + path, { waitUntil: 'networkidle' })
  expect([...hosts]).toEqual([new URL(url).host])
})

test('the usage page downloads its CSV', async () => {
  const { page, user } = await streamer()
  await useRelayTime(api.sql, user.userId, 600)
  await page.goto(`${url}/usage`)
  const [download] = await Promise.all([page.waitForEvent('download'), page.locator('a[href="/usage.csv"]').click()])
  expect(download.suggestedFilename()).toMatch(/^relay-time-.*\.csv$/)
})
