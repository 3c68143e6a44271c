/** The service with simulated relays and the site, and streamers who use it in Chromium. */
import type { Locator, Page } from 'playwright-core'
import { startFakeRelayService } from '../support/fake-relays.ts'
import { eventually, operatorPassword, type RelayUser, type TestService } from '../support/relays.ts'
import { freeSiteUrl, startSite } from '../support/site.ts'
import { signIn, submitButton, type Visitor, visitor } from './browser.ts'

export interface Streamer extends Visitor {
  readonly user: RelayUser
}

export type Look = Parameters<typeof visitor>[0]

export interface Dashboard {
  readonly api: TestService['api']
  readonly url: string
  /** A new account on the relays page, with four relays unless the plan says otherwise. */
  streamer(look?: Look, plan?: { addons: number }): Promise<Streamer>
  /** Sends a health report of the user's relay. The first one makes it active. */
  report(user: RelayUser, stats?: object): Promise<void>
  /** Sends a health report of this relay. */
  reportOf(sessionId: string, stats?: object): Promise<void>
  /** An operator on this page of the console. */
  operator(path: string, look?: Look): Promise<Visitor>
  /** A new account on the relays page with an active relay, and the relay's stream token. */
  readyRelay(look?: Look): Promise<Streamer & { readonly token: string }>
}

export async function startDashboard(variables: Readonly<Record<string, string>> = {}): Promise<Dashboard> {
  const siteUrl = await freeSiteUrl()
  const {
    api,
    sendReport,
    user: newUser,
  } = await startFakeRelayService({
    variables: {
      SVC_SITE_URL: siteUrl,
      // Simulated relays report once and then count as healthy.
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '600',
      SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '300',
      SVC_RELAY_STOP_GRACE_SECONDS: '30',
      ...variables,
    },
  })
  const { url } = await startSite(api, { SVC_SITE_URL: siteUrl })

  const streamer: Dashboard['streamer'] = async (look = {}, plan) => {
    const [user, person] = [await newUser(plan), await visitor(look)]
    const { page } = person
    await page.goto(`${url}/login`)
    await signIn(page, user)
    await page.waitForURL(`${url}/relays`)
    return { ...person, user }
  }

  const reportOf: Dashboard['reportOf'] = async (sessionId, stats) => {
    await eventually(
      () => sendReport(sessionId, { stats }),
      ({ status }) => status === 200,
    )
  }
  const report: Dashboard['report'] = async (user, stats) => {
    const { session } = await user.active()
    await reportOf(session?.session_id ?? '', stats)
  }

  const readyRelay: Dashboard['readyRelay'] = async (look) => {
    const person = await streamer(look)
    const { page, user } = person
    await start(page)
    await report(user)
    await eventually(user.active, ({ session }) => session?.state === 'active')
    await page.reload()
    const { connect } = (await user.active()).session ?? {}
    return { ...person, token: connect?.srt_url.split('/').at(-1) ?? '' }
  }

  const operator: Dashboard['operator'] = async (path, look) => {
    const browser = await visitor(look)
    const { page } = browser
    await page.goto(`${url}${path}`)
    await page.locator('input[name="password"]').fill(operatorPassword)
    await submitButton(page, '/operator/sign-in').click()
    await page.waitForURL(`${url}${path}`)
    return browser
  }

  return { api, url, operator, streamer, report, reportOf, readyRelay }
}

export const state = (page: Page) => page.locator('[data-relay-state]').getAttribute('data-relay-state')
export const announcement = (page: Page) => page.locator('[data-announcements]').textContent()
export const noRelays = (page: Page) => page.locator('[data-session="none"]').waitFor()

export const startButton = (page: Page) => page.locator('form.fields[action="/relays/start"] button[type="submit"]')
export const keepRunningButton = (page: Page) => page.locator('article form[action="/relays/start"] button')
export const stopButton = (page: Page) => page.locator('form[action$="/stop"]:not(:has([name="at_once"])) button')
export const stopNowButton = (page: Page) => page.locator('form[action$="/stop"]:has([name="at_once"]) button')

export async function start(page: Page, name = 'default'): Promise<void> {
  await page.getByLabel('Name').fill(name)
  await startButton(page).click()
  await page.getByRole('article', { name }).waitFor()
}

export const kitStep = (page: Page, name: 'phone' | 'obs' | 'more') => page.locator(`.kit[data-kit="${name}"]`)

/** Opens this software's step of the connection kit, if it is closed, and its tab. @returns the step. */
export async function openKit(page: Page, software: string): Promise<Locator> {
  const tab = page.locator('.app-tabs label', { hasText: software })
  const step = software === 'OBS' ? kitStep(page, 'obs') : page.locator('.kit', { has: tab })
  if ((await step.getAttribute('open')) === null) await step.locator(':scope > summary').click()
  if (software !== 'OBS') await tab.click()
  return step
}

/** Simulates a switch to another tab. */
export const setHidden = (page: Page, hidden: boolean) =>
  page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, value: ${hidden} })
    document.dispatchEvent(new Event('visibilitychange'))`)
