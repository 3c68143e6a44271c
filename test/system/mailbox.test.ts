/** The mailbox of `npm start` in Chromium. */
import { expect, test } from 'vitest'
import { startApiAndSite } from '../support/site.ts'
import { expectUsable, submitButton, visitor, waitForPage } from './browser.ts'

const mailbox = { SVC_MAILBOX: 'true' }
const { api, site } = await startApiAndSite({ api: mailbox, site: mailbox })

test('an empty mailbox is accessible and fits each device', async () => {
  const empty = await startApiAndSite({ api: mailbox, site: mailbox })
  const found = await visitor({ device: 'phone' })
  await found.page.goto(`${empty.site.url}/mailbox`)
  await expectUsable(found, 'mailbox-empty')
})

test.each([true, false])('a forgotten password is reset with the mailbox alone, with scripts: %s', async (script) => {
  const { email } = await api.given.user()
  const { page, faults, context } = await visitor({ script })
  await page.goto(`${site.url}/forgot-password`)
  await page.locator('input[name="email"]').fill(email)
  await submitButton(page, '/forgot-password').click()
  await page.getByRole('link', { name: 'Mailbox' }).click()
  await waitForPage(page, 'mailbox')
  await page.locator('[data-mail] a').first().click()
  await waitForPage(page, 'mailbox-mail')
  await page.locator('article a').click()
  await waitForPage(page, 'reset-password')
  expect(faults).toEqual([])
  await context.close()
})

test('the list and a mail are accessible and fit each device', async () => {
  const { mailer, sql } = api.services
  await mailer.send(sql, null, {
    to: `${'long'.repeat(12)}@example.com`,
    subject: 'notification',
    title: 'Your relay lost contact',
    paragraphs: ['The relay “main” sends no reports since 14:05 UTC.'],
    link: `${site.url}/relays`,
    linkText: 'Open your relays',
    unsubscribeLink: `${site.url}/notifications/off?token=${'x'.repeat(80)}`,
  })
  const list = await visitor({ device: 'phone' })
  await list.page.goto(`${site.url}/mailbox`)
  await expectUsable(list, 'mailbox')
  const mail = await visitor({ device: 'phone' })
  await mail.page.goto(`${site.url}/mailbox`)
  await mail.page.locator('[data-mail] a').first().click()
  await waitForPage(mail.page, 'mailbox-mail')
  await expectUsable(mail, 'mailbox-mail')
})
