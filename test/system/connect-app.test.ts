/** Connecting an app in Chromium, which applies `form-action` to the redirects after a form. */
import { expect, test } from 'vitest'
import { appVariables } from '../support/apps.ts'
import { IrlSourceClient, IrlSourceError } from '../support/irl-source-client.ts'
import { startApiAndSite } from '../support/site.ts'
import {
  type Device,
  devices,
  expectUsable,
  signIn,
  submitButton,
  type Visitor,
  visitor,
  waitForPage,
} from './browser.ts'

const { api, site } = await startApiAndSite({ api: await appVariables() })

const browsers = (Object.keys(devices) as Device[]).flatMap((device) =>
  [true, false].map((script) => ({ device, script })),
)

/** The client opens its address in the browser of the visitor. @returns what the sign-in of the client ends with. */
async function begin(client: IrlSourceClient, { page }: Visitor, signal?: AbortSignal) {
  let opened = () => {}
  const isOpen = new Promise<void>((resolve) => {
    opened = resolve
  })
  const signingIn = client.signIn(async (url) => {
    await page.goto(url)
    opened()
  }, signal)
  signingIn.catch(() => {})
  await isOpen
  return { signingIn }
}

const decide = (page: Visitor['page'], decision: 'approve' | 'deny') =>
  page.locator(`form[action$="/${decision}"] button`).click()

/** Approves and waits until the client is signed in and the browser shows its callback page, so that it can go on. */
async function approve(page: Visitor['page'], signingIn: Promise<unknown>) {
  await decide(page, 'approve')
  await signingIn
  await page.waitForURL(/^http:\/\/127\.0\.0\.1:474\d\d\/callback\?/)
}

test.for(browsers)('the client of a visitor who approves is signed in, lists and refreshes: %o', async (look) => {
  const [user, visiting] = [await api.given.user(), await visitor(look)]
  const { page, faults } = visiting
  const client = new IrlSourceClient(site.url)
  const { signingIn } = await begin(client, visiting)
  await waitForPage(page, 'login')
  await signIn(page, user)
  await waitForPage(page, 'connect')
  await approve(page, signingIn)
  expect(await client.list()).toEqual([])
  await Promise.all([client.refresh(client.tokens?.refresh), client.refresh(client.tokens?.refresh)])
  expect(await client.list()).toEqual([])
  expect(faults).toEqual([])
})

test('a visitor who denies leads the client back with a refusal', async () => {
  const [user, visiting] = [await api.given.user(), await visitor()]
  const client = new IrlSourceClient(site.url)
  const { signingIn } = await begin(client, visiting)
  await signIn(visiting.page, user)
  await waitForPage(visiting.page, 'connect')
  await decide(visiting.page, 'deny')
  await expect(signingIn).rejects.toMatchObject({ outcome: 'refused', message: 'access_denied' })
})

test('the second app of a visitor who is signed in needs no sign-in and asks again', async () => {
  const [user, visiting] = [await api.given.user(), await visitor()]
  const { page } = visiting
  for (const isFirst of [true, false]) {
    const client = new IrlSourceClient(site.url)
    const { signingIn } = await begin(client, visiting)
    if (isFirst) await signIn(page, user)
    await waitForPage(page, 'connect')
    expect(client.tokens).toBeUndefined()
    await approve(page, signingIn)
  }
})

test('an approval in another browser signs no client in', async () => {
  const [user, victim, attacker] = [await api.given.user(), await visitor(), await visitor()]
  const client = new IrlSourceClient(site.url)
  const leaving = new AbortController()
  const { signingIn } = await begin(client, attacker, leaving.signal)
  const link = new URL(attacker.page.url())
  const requestPath = link.searchParams.get('next') ?? ''
  expect(requestPath).toMatch(/^\/connect\//)
  await victim.page.goto(site.url + requestPath)
  await signIn(victim.page, user)
  await waitForPage(victim.page, 'connect')
  await decide(victim.page, 'approve')
  await victim.page.getByText('was started in another browser').waitFor()
  await attacker.page.goto(`${api.url}/oauth${requestPath.replace('/connect', '/auth')}`)
  await waitForPage(attacker.page, 'login')
  expect(client.tokens).toBeUndefined()
  leaving.abort()
  await expect(signingIn).rejects.toThrow()
})

test('disconnecting on the page ends the client’s sign-in for good', async () => {
  const [user, visiting] = [await api.given.user(), await visitor()]
  const { page } = visiting
  const client = new IrlSourceClient(site.url)
  const { signingIn } = await begin(client, visiting)
  await signIn(page, user)
  await waitForPage(page, 'connect')
  await approve(page, signingIn)
  await page.goto(`${site.url}/account/apps`)
  await page.locator('a[href$="/disconnect"]').click()
  await submitButton(page, '/account/apps/obs-irl-source/disconnect').click()
  await waitForPage(page, 'account-apps')
  const error = await client.list().catch((caught: unknown) => caught)
  expect(error).toBeInstanceOf(IrlSourceError)
  expect(error).toMatchObject({ outcome: 'signed_out' })
  expect(client.tokens).toBeUndefined()
})

test('the pages are usable on phone and desktop, light and dark', async () => {
  const [user, asked, connected] = [await api.given.user(), await visitor(), await visitor()]
  const leaving = new AbortController()
  const first = await begin(new IrlSourceClient(site.url), asked, leaving.signal)
  await signIn(asked.page, user)
  await waitForPage(asked.page, 'connect')
  await expectUsable(asked, 'connect')
  leaving.abort()
  await expect(first.signingIn).rejects.toThrow()
  const second = await begin(new IrlSourceClient(site.url), connected)
  await signIn(connected.page, user)
  await waitForPage(connected.page, 'connect')
  await approve(connected.page, second.signingIn)
  await connected.page.goto(`${site.url}/account/apps`)
  await expectUsable(connected, 'account-apps')
})
