/** Chromium with a phone's or a desktop's viewport, light or dark, with or without scripts. */

import { readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
  type Request,
} from 'playwright-core'
import { expect } from 'vitest'
import { atEnd } from '../support/at-end.ts'
import { findChromium } from './chromium.ts'

export const devices = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
} as const satisfies Record<string, BrowserContextOptions>

export type Device = keyof typeof devices
type Scheme = 'light' | 'dark'

/** Each device and each scheme once, since colours do not depend on the width. */
const looks: readonly (readonly [Device, Scheme])[] = [
  ['phone', 'light'],
  ['desktop', 'dark'],
]

interface Look {
  readonly device?: Device
  readonly scheme?: Scheme
  /** Whether pages may run scripts. */
  readonly script?: boolean
  /** Of the browser, such as `Asia/Kolkata`. */
  readonly timeZone?: string
}

export interface Visitor {
  readonly context: BrowserContext
  readonly page: Page
  /** Script errors, violations of the content security policy, and requests to other hosts than that of the page. */
  readonly faults: readonly string[]
}

/** A name of this machine at which Chromium keeps no Secure cookies without TLS. */
export const otherHost = 'elsewhere.test'

let launched: Promise<Browser> | undefined

/** One browser for all tests of a file, closed after them. */
const browser = (): Promise<Browser> => {
  launched ??= launch()
  return launched
}

async function launch(): Promise<Browser> {
  const executablePath = findChromium()
  if (!executablePath) throw new Error('Chromium is not installed: `npm run test:system` prints how to install it')
  const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking']
  args.push(`--host-resolver-rules=MAP ${otherHost} 127.0.0.1`)
  const started = await chromium.launch({ executablePath, args })
  atEnd(() => started.close())
  return started
}

/** A page in a browser context without cookies. */
export async function visitor({
  device = 'desktop',
  scheme = 'light',
  script = true,
  timeZone,
}: Look = {}): Promise<Visitor> {
  const context = await (await browser()).newContext({
    ...devices[device],
    colorScheme: scheme,
    reducedMotion: 'reduce',
    javaScriptEnabled: script,
    locale: 'en-GB',
    ...(timeZone ? { timezoneId: timeZone } : {}),
  })
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  trackFetches(page)
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error' && /content security policy/i.test(message.text())) faults.push(message.text())
  })
  context.on('request', (request) => {
    const [from, to] = [hostOf(page.url()), hostOf(request.url())]
    if (!request.isNavigationRequest() && from !== to) faults.push(`a request to ${request.url()}`)
  })
  return { context, page, faults }
}

/** Empty for a page or resource without a host, such as `about:blank` and `data:`. */
const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : '')

/** Fills in and submits the login page. */
export async function signIn(page: Page, { email, password }: { email: string; password: string }): Promise<void> {
  await page.locator('input[name="email"]').fill(email)
  await page.locator('input[name="password"]').fill(password)
  await submitButton(page, '/login').click()
}

/** The submit button of the forms with this action. */
export const submitButton = (page: Page, action: string): Locator =>
  page.locator(`form[action="${action}"] button[type="submit"]`)

export const pageNamed = (page: Page, name: string): Locator => page.locator(`main[data-page="${name}"]`)

/** Resolves when the page with this `data-page` is shown. */
export const waitForPage = (page: Page, name: string): Promise<void> => pageNamed(page, name).waitFor()

/** Installs a clock that stands still until a test runs it, in the documents that are loaded from now on. */
export async function stopClock(page: Page): Promise<void> {
  await page.clock.install()
  await page.clock.pauseAt(Date.now() + 60_000)
}

const fetchesOf = new WeakMap<Page, Set<Request>>()

/** Records which requests of the page's scripts have no answer yet. */
function trackFetches(page: Page): void {
  const fetches = new Set<Request>()
  fetchesOf.set(page, fetches)
  page.on('request', (request) => request.resourceType() === 'fetch' && fetches.add(request))
  page.on('requestfinished', (request) => fetches.delete(request))
  page.on('requestfailed', (request) => fetches.delete(request))
}

const stepMillis = 3000
const readMillis = 250
/** A request that takes longer, or that a test never answers, does not stop the page's clock. */
const pausedReadsMax = 20

/**
 * An expectation on what the page shows within this time of its clock, which has to be installed and then runs faster
 * than real time. In steps, and not while a request of the page is under way, since the page counts its next wait from
 * the answer.
 */
export function expectWithin<Read>(millis: number, page: Page, read: () => Promise<Read>) {
  let left = millis
  let pausedReads = 0
  const stepAndRead = async () => {
    if (fetchesOf.get(page)?.size && pausedReads < pausedReadsMax) pausedReads += 1
    else {
      pausedReads = 0
      if (left > 0) await page.clock.runFor(Math.min(left, stepMillis))
      left -= stepMillis
    }
    return read()
  }
  return expect.poll(stepAndRead, { interval: readMillis })
}

/** Resolves when the element is visible, within this time of the page's clock. */
export const waitWithin = (millis: number, page: Page, element: Locator) =>
  expectWithin(millis, page, () => element.isVisible()).toBe(true)

/** Presses Tab until the focus is on an element that matches the selector. */
export async function tabTo(page: Page, selector: string): Promise<void> {
  for (let step = 0; step < 60; step += 1) {
    await page.keyboard.press('Tab')
    if (await page.evaluate(`document.activeElement.matches(${JSON.stringify(selector)})`)) return
  }
  throw new Error(`the focus does not reach ${selector}`)
}

/** Resolves when the page shows the message with this code. */
export const waitForNotice = (page: Page, code: string): Promise<void> =>
  page.locator(`[role="status"][data-notice="${code}"]`).waitFor()

const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Violation {
  readonly id: string
  readonly help: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
}

/**
 * Expects the visitor's page to be accessible, large enough to touch, and to fit the smallest phones. Saves
 * screenshots, and closes the context.
 */
export async function expectUsable({ page, faults, context }: Visitor, name: string): Promise<void> {
  for (const [device, colorScheme] of looks) {
    await page.setViewportSize(devices[device].viewport)
    await page.emulateMedia({ colorScheme })
    await photograph(page, `${name}-${device}-${colorScheme}`)
    await expectAccessible(page)
  }
  await expectTouchable(page)
  await expectFits(page, devices.phone.viewport, '200%')
  await expectFits(page, { width: 320, height: 640 })
  expect(faults).toEqual([])
  await context.close()
}

/** The violations of WCAG and best practices that axe detects. */
export async function findViolations(page: Page): Promise<readonly Violation[]> {
  await page.evaluate(axe)
  const { violations } = (await page.evaluate(
    `axe.run(document, { runOnly: { type: 'tag', values: ${JSON.stringify(tags)} } })`,
  )) as { violations: Violation[] }
  return violations
}

async function expectAccessible(page: Page): Promise<void> {
  const violations = await findViolations(page)
  expect(violations.map(describeViolation), `${page.url()} is not accessible`).toEqual([])
}

const describeViolation = ({ id, help, nodes }: Violation): string =>
  `${id}: ${help}\n${nodes.map((node) => `  ${node.html}\n    ${node.failureSummary ?? ''}`).join('\n')}`

/** Expects no horizontal overflow in this viewport with this text size. */
async function expectFits(page: Page, viewport: { width: number; height: number }, textSize = ''): Promise<void> {
  const usual = page.viewportSize()
  await page.setViewportSize(viewport)
  const setTextSize = (size: string) => page.evaluate(`document.documentElement.style.fontSize = '${size}'`)
  await setTextSize(textSize)
  const wide = (await page.evaluate(`[...document.querySelectorAll('body *')]
    .filter((element) => document.scrollingElement.scrollWidth > ${viewport.width} && element.getBoundingClientRect().right > ${viewport.width})
    .map((element) => element.outerHTML.slice(0, 120))`)) as string[]
  await setTextSize('')
  if (usual) await page.setViewportSize(usual)
  expect(
    wide,
    `${page.url()} does not fit into ${viewport.width} pixels at a text size of ${textSize || '100%'}`,
  ).toEqual([])
}

/** Expects controls of at least 44 pixels height. Links within sentences are exempt. */
async function expectTouchable(page: Page): Promise<void> {
  const small =
    (await page.evaluate(`[...document.querySelectorAll('button, select, summary, nav a, a.button, a.link, ' +
      'input:not([type="hidden"], [type="checkbox"], [type="radio"])')]
    .filter((element) => element.checkVisibility() && element.getBoundingClientRect().height < 44)
    .map((element) => element.getBoundingClientRect().height + ' ' + element.outerHTML.slice(0, 120))`)) as string[]
  expect(small, `${page.url()} has targets that are too small for thumbs`).toEqual([])
}

/** Screenshots for manual review. */
const screens = join(tmpdir(), 'relay-screens')

/** Saves a screenshot of the whole page. */
async function photograph(page: Page, name: string): Promise<void> {
  await mkdir(screens, { recursive: true })
  await page.screenshot({ path: join(screens, `${name}.png`), fullPage: true })
}
