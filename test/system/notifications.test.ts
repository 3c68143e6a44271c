/**
 * Notifications in a real browser: choosing them, an address with its secret, a test, and the link that turns one off.
 */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { replaceEndpoint } from '../../db/notifications/endpoints.ts'
import { createUnsubscribeToken } from '../../db/notifications/unsubscribe-tokens.ts'
import { startReceiver } from '../support/receiver.ts'
import { expectUsable, submitButton, visitor, waitForNotice, waitForPage } from './browser.ts'
import { type Look, startDashboard } from './streamers.ts'

const { api, url, streamer } = await startDashboard()
const { sql } = api
const { sealing } = api.services
const path = '/account/notifications'
const endpointUrl = 'https://93.184.216.34/hooks/0123456789abcdef'

async function notifications(look?: Look) {
  const person = await streamer(look)
  await sql`update users set email_verified_at = now() where id = ${person.user.userId}`
  await person.page.goto(url + path)
  await waitForPage(person.page, 'account-notifications')
  return person
}

async function saveEndpoint({ page }: Awaited<ReturnType<typeof notifications>>) {
  await page.locator('input[name="type"][value="webhook"]').check()
  await page.locator('input[name="url"]').fill(endpointUrl)
  await submitButton(page, `${path}/endpoint`).click()
  await waitForNotice(page, 'signing_secret')
}

/**
 * Waits for the page that this click leads to, since the one before it may have the same notice, and Chromium may never
 * close a page whose next document is under way.
 */
async function save(page: Page) {
  await Promise.all([page.waitForEvent('load'), submitButton(page, path).click()])
  await waitForNotice(page, 'saved')
}

test.each([true, false])('a streamer chooses notifications with script: %s', async (script) => {
  const person = await notifications({ script })
  const { page } = person
  const ended = page.locator('input[name="relay_ended.email"]')
  const failed = page.locator('input[name="payment_failed.email"]')
  expect([await ended.isChecked(), await failed.isChecked()]).toEqual([false, true])
  await ended.check()
  await failed.uncheck()
  await save(page)
  expect([await ended.isChecked(), await failed.isChecked()]).toEqual([true, false])
  await ended.uncheck()
  await failed.check()
  await save(page)
  expect([await ended.isChecked(), await failed.isChecked()]).toEqual([false, true])
  await person.context.close()
})

test('the page is usable by keyboard alone', async () => {
  const { page, context } = await notifications()
  const box = page.locator('input[name="usage_80.email"]')
  await box.focus()
  await page.keyboard.press('Space')
  await page.keyboard.press('Enter')
  await waitForNotice(page, 'saved')
  expect(await box.isChecked()).toBe(true)
  await context.close()
})

test('a signing secret is hidden at first, and copied without showing it', async () => {
  const person = await notifications()
  const { page, context } = person
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await saveEndpoint(person)
  expect(await page.locator('#signing-secret').isVisible()).toBe(false)
  await page.locator('[data-copy="signing-secret"]').click()
  await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toMatch(/^whsec_/)
  expect(await page.locator('#signing-secret').isVisible()).toBe(false)
  await expectUsable(person, 'notifications-secret')
})

test('the page shows how a test and other notifications went; a worker sends nothing to an address of this machine', async () => {
  const receiver = await startReceiver()
  const person = await notifications()
  const { page, user } = person
  // As if the rules had been different when it was saved.
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  await replaceEndpoint(sql, sealing, user.userId, { type: 'webhook', url: receiver.url, secret })
  await page.goto(url + path)
  await submitButton(page, `${path}/endpoint/test`).click()
  await waitForNotice(page, 'test_requested')
  await expect
    .poll(async () => {
      await page.reload()
      return page.locator('[data-delivery="test"]').getAttribute('data-state')
    })
    .toBe('failed')
  expect(receiver.requests).toEqual([])
  await sql`
    insert into outbox_messages (user_id, channel, kind, attempts, last_error, next_attempt_at, sent_at, failed_at)
    values (${user.userId}, 'webhook', 'relay_ended', 3, 'The endpoint answered 500.', now() + interval '1 hour', null, null),
      (${user.userId}, 'webhook', 'usage_80', 1, null, null, now(), null),
      (${user.userId}, 'email', 'payment_failed', 9, 'refused', null, null, now())`
  await page.reload()
  await expectUsable(person, 'notifications')
})

test('the page is usable before anything is set up, and with a refused address', async () => {
  const fresh = await streamer({ device: 'phone' })
  await fresh.page.goto(url + path)
  await waitForPage(fresh.page, 'account-notifications')
  await expectUsable(fresh, 'notifications-none')
  const refused = await notifications({ device: 'phone' })
  await refused.page.locator('input[name="url"]').fill('https://127.0.0.1/')
  await submitButton(refused.page, `${path}/endpoint`).click()
  await refused.page.getByRole('alert').waitFor()
  await expectUsable(refused, 'notifications-refused')
})

test('a link turns one notification off after a question, for a visitor who is not signed in', async () => {
  const { user, context } = await streamer()
  await context.close()
  const token = createUnsubscribeToken(sealing, { userId: user.userId, kind: 'payment_failed', channel: 'email' })
  const open = async () => {
    const person = await visitor({ device: 'phone' })
    await person.page.goto(`${url}/notifications/off?token=${token}`)
    await waitForPage(person.page, 'notifications-off')
    return person
  }
  await expectUsable(await open(), 'notifications-off')
  const person = await open()
  await submitButton(person.page, '/notifications/off').click()
  await waitForNotice(person.page, 'turned_off')
  const { body } = await api.get<{ kinds: { kind: string; email: boolean }[] }>('/notifications', user)
  expect(body.kinds.find(({ kind }) => kind === 'payment_failed')?.email).toBe(false)
  await expectUsable(person, 'notifications-off-done')
  const help = await visitor({ device: 'phone' })
  await help.page.goto(`${url}/help/webhooks`)
  await waitForPage(help.page, 'help-webhooks')
  await expectUsable(help, 'help-webhooks')
  const wrong = await visitor({ device: 'phone' })
  await wrong.page.goto(`${url}/notifications/off?token=x`)
  await waitForPage(wrong.page, 'notifications-off-failed')
  await expectUsable(wrong, 'notifications-off-failed')
})
