/** The operator console in Chromium: sign-in, health, acts with a reason, and sign-out. */
import { expect, test } from 'vitest'
import { eventually, operatorPassword } from '../support/relays.ts'
import { expectUsable, type Visitor, visitor, waitForNotice, waitForPage } from './browser.ts'
import { startDashboard } from './streamers.ts'

const { api, url, operator: newOperator, readyRelay } = await startDashboard()

async function enterPassword({ page }: Visitor, password: string): Promise<void> {
  await page.locator('input[name="password"]').fill(password)
  await page.locator('form[action="/operator/sign-in"] button[type="submit"]').click()
}

test('a wrong password is refused, and the right one opens the console with a cookie that scripts cannot read', async () => {
  const browser = await visitor()
  const { page, context } = browser
  await page.goto(`${url}/operator`)
  await waitForPage(page, 'operator-sign-in')
  await enterPassword(browser, 'not the operator password')
  await page.locator('[data-problem="invalid_operator"]').waitFor()
  await enterPassword(browser, operatorPassword)
  await waitForPage(page, 'operator-overview')
  const cookie = (await context.cookies()).find(({ name }) => name === 'svc_operator')
  expect(cookie).toMatchObject({ path: '/operator', httpOnly: true, secure: true, sameSite: 'Strict' })
  expect(cookie?.value).not.toContain(operatorPassword)
  expect(await page.evaluate('document.cookie')).toBe('')
  expect(browser.faults).toEqual([])
})

test.each([true, false])('an act asks for its reason and is audited, with scripts: %s', async (script) => {
  const browser = await newOperator('/operator/regions', { script })
  const { page } = browser
  const act = page.locator('[data-act$="/drain"]').first()
  await act.locator('summary').focus()
  await page.keyboard.press('Enter')
  await act.getByRole('button').click()
  // The browser refuses an empty reason.
  expect(await page.locator('[data-drained="true"]').count()).toBe(0)
  await act.locator('input[name="reason"]').fill(`the image is broken, scripts ${script}`)
  await page.keyboard.press('Enter')
  await waitForNotice(page, 'drain')
  const resume = page.locator('[data-act$="/resume"]').first()
  await resume.locator('summary').click()
  await resume.locator('input[name="reason"]').fill('it works again')
  await resume.getByRole('button').click()
  await waitForNotice(page, 'resume')
  await page.goto(`${url}/operator/audit?action=region_drained`)
  expect(await page.locator('[data-detail="reason"]').first().innerText()).toBe(
    `the image is broken, scripts ${script}`,
  )
})

test('the overview refreshes itself without closing what is open', async () => {
  const { page } = await newOperator('/operator')
  await page.evaluate('window.isSameDocument = true')
  await page.evaluate("document.querySelector('main details').open = true")
  const tile = page.locator('[data-tile="orphans"]')
  expect(await tile.getAttribute('data-health')).toBe('good')
  await api.sql`insert into instances (instance_id, region, unowned_since) values ('i-lost', 'local', now())`
  await expect.poll(() => tile.getAttribute('data-health')).toBe('warn')
  expect(await page.evaluate('window.isSameDocument')).toBe(true)
  expect(await page.evaluate("document.querySelector('main details').open")).toBe(true)
})

test('a part of a page is not replaced while a reason is typed', async () => {
  const { page } = await newOperator('/operator/regions')
  await page.locator('[data-act] summary').first().click()
  const reason = page.locator('input[name="reason"]').first()
  await reason.fill('half a rea')
  await page.waitForResponse((response) => response.request().headers()['x-unattended'] === 'true')
  await reason.press('End')
  expect(await reason.inputValue()).toBe('half a rea')
})

test('a page that is left open leads to the sign-in once the session has ended', async () => {
  const { page } = await newOperator('/operator/jobs')
  await api.sql`update operator_sessions set expires_at = now()`
  await page.locator('main[data-page="operator-sign-in"]').waitFor()
  expect(new URL(page.url()).searchParams.get('next')).toBe('/operator/jobs')
})

test('after a sign-out the console asks for the password again', async () => {
  const { page, context } = await newOperator('/operator')
  await page.locator('form[action="/operator/sign-out"] button').click()
  await waitForPage(page, 'operator-sign-in')
  expect((await context.cookies()).map(({ name }) => name)).not.toContain('svc_operator')
  await page.goto(`${url}/operator/audit`)
  await waitForPage(page, 'operator-sign-in')
})

test.each(['/operator', '/operator/regions', '/operator/jobs', '/operator/audit'])(
  '%s is accessible on phones and desktops, light and dark',
  async (path) => {
    await readyRelay()
    const browser = await newOperator(path, { device: 'phone' })
    for (const summary of await browser.page.locator('main summary').all()) await summary.click()
    await expectUsable(browser, path.slice(1).replaceAll('/', '-'))
  },
)

test('the sign-in page is accessible, with and without a problem', async () => {
  const browser = await visitor({ device: 'phone' })
  await browser.page.goto(`${url}/operator`)
  await enterPassword(browser, 'wrong')
  await browser.page.locator('[data-problem]').waitFor()
  await expectUsable(browser, 'operator-sign-in')
  await eventually(
    () => api.sql`select from audit_entries where action = 'operator_sign_in_failed'`,
    (rows) => rows.length > 0,
  )
})
