/** Accessibility and layout of every dashboard page in each of its states. */
import { expect, test } from 'vitest'
import { expectUsable, type Visitor } from './browser.ts'
import { news, start, startDashboard } from './streamers.ts'

const { api, url, streamer, report, readyRelay } = await startDashboard()

const pages: Readonly<Record<string, () => Promise<Visitor>>> = {
  'relays-none': () => streamer({ device: 'phone' }),
  'relays-no-plan': async () => {
    const person = await streamer({ device: 'phone' })
    await api.sql`update users set plan_tier = 'free', addons = 0 where id = ${person.user.userId}`
    await person.page.reload()
    return person
  },
  'relays-awaited': async () => {
    const person = await streamer({ device: 'phone' })
    await start(person.page)
    return person
  },
  'relays-long-name': async () => {
    const person = await streamer({ device: 'phone' })
    await start(person.page, 'w'.repeat(64))
    await report(person.user)
    await expect.poll(() => news(person.page).textContent(), { timeout: 15_000 }).toMatch(/^“w{64}”: Ready$/)
    return person
  },
  'relays-ready': () => readyRelay({ device: 'phone' }),
  'relays-kit': async () => {
    const person = await readyRelay({ device: 'phone' })
    const { page } = person
    await page.getByText('Connect your software').click()
    for (const summary of await page.locator('.software > summary').all()) await summary.click()
    for (const summary of await page.locator('[data-secret] > summary').all()) await summary.click()
    return person
  },
  'relays-stopping': async () => {
    const person = await readyRelay({ device: 'phone' })
    await person.page.getByRole('button', { name: 'Stop default' }).click()
    await person.page.getByRole('button', { name: 'Stop now' }).waitFor()
    return person
  },
  'relays-refused': async () => {
    const person = await streamer({ device: 'phone' }, { addons: 0 })
    await person.user.start({ connection_id: 'plugin' })
    await person.page.getByRole('button', { name: 'Start', exact: true }).click()
    await person.page.getByRole('alert').waitFor()
    return person
  },
  account: async () => {
    const person = await streamer({ device: 'phone' })
    const { userId } = person.user
    await api.given.signIn(person.user, 'OBS at home, on the big machine under the desk')
    await api.sql`insert into user_oauth_accounts (user_id, provider, provider_user_id) values (${userId}, 'twitch', ${userId})`
    await person.page.goto(`${url}/account?done=linked`)
    return person
  },
}

test.for(Object.keys(pages))('everybody can read and use the page: %s', async (name) => {
  const person = await pages[name]?.()
  if (!person) throw new Error(`there is no page ${name}`)
  await expectUsable(person, name)
})
