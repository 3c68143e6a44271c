/**
 * Takes the pictures of docs/images: `npm run screenshots`. Starts the service in a folder of its own, publishes a test
 * pattern to a relay, and photographs each page at two widths, light and dark. Takes about two minutes; needs Chromium
 * and ffmpeg.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import postgres from 'postgres'
import { findFreePort } from '../support/ports.ts'
import { endAll, Stack } from '../support/stack.ts'
import { findChromium } from '../system/chromium.ts'
import { fillRecentBitrate, insertEndedRelays } from './example-data.ts'

const folder = fileURLToPath(new URL('../../docs/images/', import.meta.url))
const operatorPassword = 'a-password-for-pictures'
const regions = [
  { region: 'eu-central', display_name: 'Frankfurt', provider: 'local', capacity: 20, default: true },
  { region: 'us-east', display_name: 'Virginia', provider: 'local', capacity: 12 },
  { region: 'ap-southeast', display_name: 'Singapore', provider: 'local', capacity: 6 },
]

interface Picture {
  readonly name: string
  readonly path: string
  readonly visitor: 'anyone' | 'user' | 'operator'
  /** Selector of what must be shown before the picture is taken. */
  readonly shows?: string
}

const pictures: readonly Picture[] = [
  { name: 'landing', path: '/', visitor: 'anyone' },
  { name: 'relays', path: '/relays', visitor: 'user', shows: '[data-signal="phone"] [data-bitrate]' },
  { name: 'history', path: '/history', visitor: 'user' },
  { name: 'usage', path: '/usage', visitor: 'user' },
  { name: 'account', path: '/account', visitor: 'user' },
  { name: 'console', path: '/operator', visitor: 'operator' },
  { name: 'reference', path: '/docs', visitor: 'anyone', shows: '.scalar-app' },
]

const looks = [
  { width: 1280, height: 860, heightMax: 1400 },
  { width: 390, height: 844, heightMax: 1500 },
] as const
const schemes = ['light', 'dark'] as const

const say = (text: string) => void process.stdout.write(`${text}\n`)

async function takeAll(): Promise<void> {
  const executablePath = findChromium()
  if (!executablePath) throw new Error('Chromium is not installed: `npm run test:system` prints how to install it')
  const dataDir = await mkdtemp(join(tmpdir(), 'relay-screenshots-'))
  say('Starting the service (about 20 seconds)')
  const stack = new Stack(dataDir, { variables: await variables() })
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  let publisher: ChildProcess | undefined
  let demo: Demo | undefined
  try {
    await stack.ready()
    demo = await prepareAccount(stack, dataDir)
    publisher = await startStream(stack, demo)
    await mkdir(folder, { recursive: true })
    for (const look of looks) for (const scheme of schemes) await takeLook(browser, { stack, demo, ...look, scheme })
  } finally {
    publisher?.kill('SIGKILL')
    await browser.close()
    // A service that did not start has ended by itself.
    if (demo) {
      await demo.sql.end({ timeout: 1 })
      await stack.end('SIGTERM')
    }
    await endAll(dataDir)
    await rm(dataDir, { recursive: true, force: true })
  }
}

const variables = async () => ({
  PORT: String(await findFreePort()),
  SVC_SITE_PORT: String(await findFreePort()),
  SVC_OPERATOR_PASSWORD: operatorPassword,
  SVC_REGIONS: JSON.stringify(regions),
  SVC_RELAY_HEALTH_INTERVAL_SECONDS: '2',
  SVC_RATE_LIMITS: 'login=1000,relay_active=10000,relay_start=1000',
})

interface Demo {
  readonly email: string
  readonly password: string
  readonly sql: postgres.Sql
}

async function prepareAccount(stack: Stack, dataDir: string): Promise<Demo> {
  const { demo } = JSON.parse(await readFile(join(dataDir, 'secrets.json'), 'utf8')) as { demo: Omit<Demo, 'sql'> }
  const [, host = '', port] = /Postgres +([\d.]+):(\d+)/.exec(stack.output) ?? []
  const password = (await readFile(join(dataDir, 'postgres/password'), 'utf8')).trim()
  const sql = postgres({ host, port: Number(port), user: 'postgres', password, database: 'svc', max: 1 })
  const [user] = await sql<{ id: string }[]>`
    update users set email_verified_at = now() where email = ${demo.email} returning id`
  await insertEndedRelays(
    sql,
    user?.id ?? '',
    new Date(),
    regions.map(({ region }) => region),
  )
  return { ...demo, sql }
}

/** Starts two relays and publishes to the first one. */
async function startStream(stack: Stack, { email, password, sql }: Demo): Promise<ChildProcess> {
  const call = async <Body>(method: string, path: string, jwt: string, body?: object): Promise<Body> => {
    const response = await fetch(`${stack.api}/api/v1${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        'idempotency-key': crypto.randomUUID(),
        ...(jwt ? { authorization: `Bearer ${jwt}` } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as Body
  }
  const { cp_access_jwt: jwt } = await call<{ cp_access_jwt: string }>('POST', '/auth/login', '', { email, password })
  for (const [index, connection_id] of ['main-camera', 'backpack'].entries())
    await call('POST', '/relay/start', jwt, { connection_id, region: regions[index]?.region })
  type Live = { session: { state: string; connect?: { srt_url: string } } | null }
  const active = () => call<Live>('GET', '/relay/active?connection_id=main-camera', jwt)
  const address = await until(async () => (await active()).session?.connect?.srt_url)
  const pattern = ['-re', '-f', 'lavfi', '-i', 'testsrc2=size=1280x720:rate=30', '-b:v', '5M', '-f', 'mpegts']
  const publisher = spawn('ffmpeg', ['-nostdin', '-loglevel', 'error', ...pattern, `${address}&pkt_size=1316`])
  await until(async () =>
    (await sql`select from relay_health where bitrate_kbps > 1000`).length > 0 ? true : undefined,
  )
  await fillRecentBitrate(sql)
  return publisher
}

async function until<T>(read: () => Promise<T | undefined>): Promise<T> {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await sleep(500)) {
    const value = await read()
    if (value !== undefined) return value
  }
  throw new Error('the relay received no stream within a minute')
}

interface Shoot {
  readonly stack: Stack
  readonly demo: Demo
  readonly width: number
  readonly height: number
  readonly heightMax: number
  readonly scheme: (typeof schemes)[number]
}

async function takeLook(browser: Browser, shoot: Shoot): Promise<void> {
  const { width, height, scheme, stack } = shoot
  const contexts: Record<Picture['visitor'], BrowserContext | undefined> = {
    anyone: undefined,
    user: undefined,
    operator: undefined,
  }
  for (const picture of pictures) {
    contexts[picture.visitor] ??= await browser.newContext({
      viewport: { width, height },
      colorScheme: scheme,
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'Europe/Berlin',
    })
    const context = contexts[picture.visitor] as BrowserContext
    const page = await context.newPage()
    await signIn(page, picture.visitor, shoot)
    await page.goto(stack.site + picture.path)
    if (picture.shows) await page.locator(picture.shows).first().waitFor({ timeout: 20_000 })
    // The second visit has the font in its cache.
    await page.reload()
    if (picture.shows) await page.locator(picture.shows).first().waitFor({ timeout: 20_000 })
    await sleep(1500)
    await photograph(page, `${picture.name}-${width}-${scheme}`, shoot)
    await page.close()
  }
  for (const context of Object.values(contexts)) await context?.close()
}

async function signIn(page: Page, visitor: Picture['visitor'], { stack, demo }: Shoot): Promise<void> {
  if (visitor === 'anyone') return
  const path = visitor === 'user' ? '/login' : '/operator/sign-in'
  await page.goto(stack.site + path)
  if (new URL(page.url()).pathname !== path) return
  if (visitor === 'user') await page.locator('input[name="email"]').fill(demo.email)
  await page.locator('input[name="password"]').fill(visitor === 'user' ? demo.password : operatorPassword)
  await page.locator(`form[action="${path}"] button[type="submit"]`).click()
  await page.waitForURL((url) => url.pathname !== path)
}

/** WebP, which is a quarter of a PNG's size. Long pages are cut. */
async function photograph(page: Page, name: string, { width, height, heightMax }: Shoot): Promise<void> {
  // A reload goes to the section that the reference has put into its address.
  await page.evaluate('scrollTo(0, 0)')
  const pageHeight = (await page.evaluate('document.documentElement.scrollHeight')) as number
  const clip = { x: 0, y: 0, width, height: Math.max(height, Math.min(pageHeight, heightMax)), scale: 1 }
  const devtools = await page.context().newCDPSession(page)
  const { data } = await devtools.send('Page.captureScreenshot', {
    format: 'webp',
    quality: 82,
    clip,
    captureBeyondViewport: true,
  })
  await writeFile(join(folder, `${name}.webp`), Buffer.from(data, 'base64'))
  say(`docs/images/${name}.webp`)
}

await takeAll()
