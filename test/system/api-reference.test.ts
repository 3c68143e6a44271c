/** The API reference in Chromium, on the API's own origin and on the site's. */
import type { Page, Request } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { startApiAndSite } from '../support/site.ts'
import { findViolations, type Visitor, visitor } from './browser.ts'

const { api, site } = await startApiAndSite()
const origins = [
  ['the API', api.url],
  ['the site', site.url],
] as const

interface Reader extends Visitor {
  /** The requests that left the origin of the page. */
  readonly foreign: readonly string[]
}

/** Opens the reference at an operation. */
async function open(origin: string, operation: string, look?: Parameters<typeof visitor>[0]): Promise<Reader> {
  const reader = await visitor(look)
  const foreign: string[] = []
  reader.context.on('request', (request: Request) => {
    if (!request.url().startsWith(`${origin}/`) && !/^(data|blob):/.test(request.url())) foreign.push(request.url())
  })
  await reader.page.goto(`${origin}/docs#tag/${operation}`)
  return { ...reader, foreign }
}

const capacity = 'regions/GET/api/v1/capacity/status'
const testButton = (page: Page, path: string) =>
  page.getByRole('button', { name: new RegExp(`test request.*${path}\\b`, 'i') })
const width = (page: Page) => page.evaluate('document.scrollingElement.scrollWidth')

describe.each(origins)('the API reference of %s', (_, origin) => {
  test('sends a request that is tried out to its own origin', async () => {
    const { page, foreign, faults, context } = await open(origin, capacity)
    await testButton(page, 'capacity/status').click()
    const replied = page.waitForResponse(`${origin}/api/v1/capacity/status`)
    await page.getByRole('dialog').getByRole('button', { name: /^send/i }).first().click()
    expect((await replied).status()).toBe(200)
    await expect.poll(() => page.getByRole('dialog').innerText()).toMatch(/Status:\s+200/)
    expect([foreign, faults]).toEqual([[], []])
    await context.close()
  })

  test.each(['light', 'dark'] as const)('fits a phone in its %s colours', async (scheme) => {
    const { page, foreign, faults, context } = await open(origin, capacity, { device: 'phone', scheme })
    await testButton(page, 'capacity/status').waitFor()
    expect(await width(page)).toBe(390)
    expect([foreign, faults]).toEqual([[], []])
    await context.close()
  })

  test('lists the operations without scripts', async () => {
    const { page, foreign, context } = await open(origin, capacity, { script: false, device: 'phone' })
    const operations = page.locator('[data-operation]')
    expect(await operations.count()).toBeGreaterThan(60)
    await page.locator('[data-operation="startRelay"] > summary').click()
    expect(await page.locator('[data-operation="startRelay"]').innerText()).toContain('relay_limit_reached')
    expect(await page.locator('h1').evaluate((one) => one.ownerDocument.documentElement.scrollWidth)).toBe(390)
    expect(foreign).toEqual([])
    await context.close()
  })
})

test('a start that is tried out has a key of its own and no optional parameter', async () => {
  const { page, context } = await open(api.url, 'relays/POST/api/v1/relay/start')
  await testButton(page, 'relay/start').click()
  const keys: (string | undefined)[] = []
  for (const _ of ['once', 'after a reload']) {
    const sent = page.waitForRequest((one) => one.url() === `${api.url}/api/v1/relay/start`)
    await page.getByRole('dialog').getByRole('button', { name: /^send/i }).first().click()
    keys.push((await sent).headers()['idempotency-key'])
    await page.reload()
    await testButton(page, 'relay/start').click()
  }
  expect(keys).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), expect.stringMatching(/^[0-9a-f-]{36}$/)])
  expect(keys[0]).not.toBe(keys[1])
  await context.close()
})

/** Rules that Scalar's own elements break, and that neither its configuration nor a stylesheet changes. */
const exceptions = {
  'button-name': 'the buttons that copy a code block appear on hover and have an icon without a name',
  'label-content-name-mismatch': 'the buttons that open a group are named "Show all … endpoints" and show "Show More"',
  'scrollable-region-focusable': 'boxes with long examples scroll, and are not focusable themselves',
} as const

test.each([
  ['phone', 'dark'],
  ['desktop', 'light'],
  ['desktop', 'dark'],
] as const)('is accessible on a %s in its %s colours, besides known exceptions', async (device, scheme) => {
  const { page, context } = await open(api.url, capacity, { device, scheme })
  await testButton(page, 'capacity/status').waitFor()
  // Scalar draws its elements one after another, with colours that change gradually.
  const unexpected = async () => (await findViolations(page)).filter(({ id }) => !(id in exceptions))
  await expect.poll(unexpected, { interval: 1000 }).toEqual([])
  await context.close()
})
