/** The page of a connection in Chromium: what its players see while no stream arrives. */
import type { Page } from 'playwright-core'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { expectUsable, tabTo, waitForNotice, waitForPage } from './browser.ts'
import { type Look, startDashboard } from './streamers.ts'

const { api, url, readyRelay } = await startDashboard()

/** A picture with bands of colours. */
const picture = await sharp(
  Buffer.from(
    '<svg xmlns="http://www.w3.org/2000/svg" width="1280" height="720"><rect width="1280" height="720" fill="#1d4ed8"/>' +
      '<circle cx="640" cy="360" r="240" fill="#f59e0b"/></svg>',
  ),
)
  .png()
  .toBuffer()
const file = { name: 'back-soon.png', mimeType: 'image/png', buffer: picture }

const saveButton = (page: Page) => page.getByRole('button', { name: 'Save' })
const shown = (page: Page) => page.evaluate(`document.querySelector('img.slate').naturalWidth`)

async function onPage(look: Look) {
  const visitor = await readyRelay(look)
  await visitor.page.goto(`${url}/connections/default`)
  await waitForPage(visitor.page, 'connection')
  return visitor
}

test.each([true, false])('a picture is chosen, seen and removed, with scripts: %s', async (script) => {
  const { page, user, faults } = await onPage({ script })
  await page.getByRole('radio', { name: /^My picture/ }).check()
  await page.getByLabel('Upload a picture').setInputFiles(file)
  await saveButton(page).click()
  await waitForNotice(page, 'saved')
  expect(await page.locator('[data-now]').getAttribute('data-now')).toBe('slate')
  if (script) await expect.poll(() => shown(page)).toBe(1280)
  const { body } = await api.get<{ connections: [{ on_loss: string; slate: string }] }>('/relay/connections', user)
  expect(body.connections[0]).toMatchObject({ on_loss: 'slate', slate: expect.any(String) })
  await page.getByRole('button', { name: 'Remove the picture' }).click()
  await waitForNotice(page, 'slate_removed')
  expect(await page.locator('[data-slate]').getAttribute('data-slate')).toBe('built-in')
  expect(faults).toEqual([])
})

test('a file that is no picture is refused beside its field, which has the focus', async () => {
  const { page, faults } = await onPage({})
  const field = page.getByLabel('Upload a picture')
  await field.setInputFiles({ name: 'holiday.png', mimeType: 'image/png', buffer: Buffer.from('text') })
  await saveButton(page).click()
  const problem = page.locator('.field [role="alert"]')
  await problem.waitFor()
  expect(await problem.textContent()).toContain('neither a PNG nor a JPEG')
  expect(await field.getAttribute('aria-invalid')).toBe('true')
  expect(await page.evaluate('document.activeElement.id')).toBe('picture')
  expect(faults).toEqual([])
})

test('a file that is too large is not sent', async () => {
  const { page } = await onPage({})
  const field = page.getByLabel('Upload a picture')
  const isValid = () => page.evaluate(`document.querySelector('#picture').checkValidity()`)
  await field.setInputFiles({ name: 'large.png', mimeType: 'image/png', buffer: Buffer.alloc(4 * 1024 * 1024 + 1) })
  expect(await isValid()).toBe(false)
  await saveButton(page).click()
  expect(page.url()).toBe(`${url}/connections/default`)
  await field.setInputFiles(file)
  expect(await isValid()).toBe(true)
})

test('what players see is chosen with the keyboard alone, from the relays page', async () => {
  const { page } = await readyRelay()
  await tabTo(page, 'article a[href="/connections/default"]')
  await page.keyboard.press('Enter')
  await waitForPage(page, 'connection')
  await tabTo(page, '[name="on_loss"]')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('Enter')
  await waitForNotice(page, 'saved')
  expect(await page.locator('[data-now]').getAttribute('data-now')).toBe('hold')
})

const states: Readonly<Record<string, () => ReturnType<typeof onPage>>> = {
  connection: () => onPage({ device: 'phone' }),
  'connection-slate': async () => {
    const visitor = await onPage({ device: 'phone' })
    await visitor.page.getByRole('radio', { name: /^My picture/ }).check()
    await visitor.page.getByLabel('Upload a picture').setInputFiles(file)
    await saveButton(visitor.page).click()
    await waitForNotice(visitor.page, 'saved')
    await expect.poll(() => shown(visitor.page)).toBe(1280)
    return visitor
  },
  'connection-refused': async () => {
    const visitor = await onPage({ device: 'phone' })
    await visitor.page.getByLabel('Upload a picture').setInputFiles({ ...file, buffer: Buffer.from('text') })
    await saveButton(visitor.page).click()
    await visitor.page.getByRole('alert').waitFor()
    return visitor
  },
  connections: async () => {
    const visitor = await readyRelay({ device: 'phone' })
    await visitor.user.start({ connection_id: 'w'.repeat(64) })
    await visitor.page.goto(`${url}/connections`)
    await waitForPage(visitor.page, 'connections')
    return visitor
  },
}

test.for(Object.keys(states))('the page %s is accessible and fits small phones', async (name) => {
  const visitor = await states[name]?.()
  if (!visitor) throw new Error(`there is no page ${name}`)
  await expectUsable(visitor, name)
})
