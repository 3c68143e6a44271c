/** Accessibility and layout of the dashboard's pages in each of their states. */
import { expect, test } from 'vitest'
import { eventually } from '../support/relays.ts'
import { expectUsable, type Visitor } from './browser.ts'
import {
  announcement,
  openKit,
  start,
  startButton,
  startDashboard,
  state,
  stopButton,
  stopNowButton,
} from './streamers.ts'

const { api, url, streamer, report, reportOf, readyRelay } = await startDashboard()

const stream = { publishing: true, bitrate_kbps: 5200, links: 3, bytes_total: 3_400_000_000 }

const pages: Readonly<Record<string, () => Promise<Visitor>>> = {
  'relays-none': () => streamer({ device: 'phone' }),
  'relays-no-plan': async () => {
    const visitor = await streamer({ device: 'phone' })
    await api.sql`update users set plan_tier = 'free', addons = 0 where id = ${visitor.user.userId}`
    await visitor.page.reload()
    return visitor
  },
  'relays-provisioning': async () => {
    const visitor = await streamer({ device: 'phone' })
    await start(visitor.page)
    return visitor
  },
  'relays-long-name': async () => {
    const visitor = await streamer({ device: 'phone' })
    const name = 'w'.repeat(64)
    await start(visitor.page, name)
    await report(visitor.user)
    await expect.poll(() => state(visitor.page)).toBe('active')
    expect(await announcement(visitor.page)).toContain(name)
    return visitor
  },
  'relays-ready': () => readyRelay({ device: 'phone' }),
  'relays-kit': async () => {
    const visitor = await readyRelay({ device: 'phone' })
    const { page } = visitor
    await openKit(page, 'BELABOX')
    for (const summary of await page.locator('[data-secret] > summary:visible').all()) await summary.click()
    return visitor
  },
  'relays-qr': async () => {
    const visitor = await readyRelay({ device: 'phone' })
    const { page } = visitor
    await openKit(page, 'Moblin')
    await page.locator('[data-app="moblin"] [data-secret] > summary').click()
    await expect
      .poll(() => page.evaluate(`document.querySelector('[data-app="moblin"] .qr').naturalWidth`))
      .toBeGreaterThan(0)
    return visitor
  },
  'relays-live': async () => {
    const visitor = await streamer({ device: 'phone' })
    const { page, user } = visitor
    for (const connection_id of ['phone', 'backpack', 'studio']) {
      const { session_id } = (await user.start({ connection_id })).body.session
      await reportOf(session_id, connection_id === 'studio' ? undefined : stream)
    }
    await api.sql`update relay_health set recent_slot = recent_slot - 1, recent_bitrate_kbps =
      array[0, 3100, 4200, 5100, 5300, 5000, 5200, 2400, 900, 4100, 5250, 5300, 5280, 5200, 5100, 4900, 5200, 5230, 5200]
      where is_publishing`
    await reportOf((await user.active('phone')).session?.session_id ?? '', stream)
    await user.start({ connection_id: 'old' })
    await user.stop({ connection_id: 'old', immediate: true })
    await page.reload()
    await page.locator('[data-sparkline]').first().waitFor()
    await page.locator('[data-ended]').waitFor()
    return visitor
  },
  'relays-stopping': async () => {
    const visitor = await readyRelay({ device: 'phone' })
    await stopButton(visitor.page).click()
    await stopNowButton(visitor.page).waitFor()
    return visitor
  },
  'relays-publishing': async () => {
    const visitor = await readyRelay({ device: 'phone' })
    await report(visitor.user, stream)
    await visitor.page.reload()
    await visitor.page.locator('[data-signal="phone"] [data-bitrate]').waitFor()
    return visitor
  },
  'history-running': async () => {
    const visitor = await readyRelay({ device: 'phone' })
    await report(visitor.user, stream)
    await api.sql`update relay_health set recent_slot = recent_slot - 1`
    await report(visitor.user, { ...stream, bitrate_kbps: 3000 })
    await visitor.page.getByRole('link', { name: 'Details of default' }).click()
    await visitor.page.getByRole('img').waitFor()
    return visitor
  },
  history: async () => {
    const visitor = await readyRelay({ device: 'phone' })
    await report(visitor.user, stream)
    await visitor.user.stop({ connection_id: 'default', immediate: true })
    await visitor.page.goto(`${url}/history`)
    return visitor
  },
  'history-ended': async () => {
    const visitor = await readyRelay({ device: 'phone' })
    await visitor.user.stop({ connection_id: 'default', immediate: true })
    await visitor.page.goto(`${url}/history`)
    await visitor.page.locator('[data-ended] a').click()
    return visitor
  },
  'relays-refused': async () => {
    const visitor = await streamer({ device: 'phone' }, { addons: 0 })
    await visitor.user.start({ connection_id: 'plugin' })
    await startButton(visitor.page).click()
    await visitor.page.getByRole('alert').waitFor()
    return visitor
  },
  'account-keys-relays': async () => {
    const visitor = await readyRelay({ device: 'phone' })
    const { page, user } = visitor
    await reportOf((await user.start({ connection_id: 'backpack' })).body.session.session_id)
    for (const name of ['Studio PC', 'w'.repeat(64)])
      await api.post('/relay/play-keys', { name }, { bearer: user.bearer })
    await eventually(user.active, ({ sessions }) => sessions.every(({ connect }) => connect != null))
    await page.goto(`${url}/account/keys`)
    for (const summary of await page.locator('[data-kind="own"] [data-secret] > summary').all()) await summary.click()
    expect(await page.locator('[data-kind="own"] .qr').count()).toBe(4)
    const codes = `[...document.querySelectorAll('[data-kind="own"] .qr')]`
    await expect.poll(() => page.evaluate(`${codes}.every(({ naturalWidth }) => naturalWidth > 0)`)).toBe(true)
    return visitor
  },
  account: async () => {
    const visitor = await streamer({ device: 'phone' })
    const { userId } = visitor.user
    await api.given.signIn(visitor.user, 'OBS at home, on the big machine under the desk')
    await api.sql`insert into user_oauth_accounts (user_id, provider, provider_user_id) values (${userId}, 'twitch', ${userId})`
    await visitor.page.goto(`${url}/account/security?done=linked`)
    return visitor
  },
}

test.for(Object.keys(pages))('the page %s is accessible and fits small phones', async (name) => {
  const visitor = await pages[name]?.()
  if (!visitor) throw new Error(`there is no page ${name}`)
  await expectUsable(visitor, name)
})
