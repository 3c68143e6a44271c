/** The site with its console, and operators who are signed in to it. */
import { randomBytes, randomUUID } from 'node:crypto'
import type { TestApi } from './api.ts'
import { type FakeRelayService, startFakeRelayService } from './fake-relays.ts'
import { operatorPassword } from './relays.ts'
import { freeSiteUrl, startSite, type TestSite } from './site.ts'
import type { Browser } from './site-browser.ts'

/** Every text that others choose, as markup. */
export const markup = '<img src=x onerror=alert(1)>'

export async function signedInOperator(site: TestSite): Promise<Browser> {
  const browser = site.browser()
  await browser.post('/operator/sign-in', { password: operatorPassword })
  return browser
}

/** Creates an account with this id, which a billing event may name already. */
export async function createAccountWithId(api: TestApi, userId: string): Promise<void> {
  await api.sql`
    insert into users (id, email, stream_token_sealed, stream_token_hash)
    values (${userId}, ${`${userId}@example.com`}, ${randomUUID()}, ${randomBytes(32)})`
}

export interface OperatorConsole {
  readonly service: FakeRelayService
  readonly site: TestSite
  readonly browser: Browser
}

/** Its relays report only what the test sends, and make no transition by time. */
export async function startOperatorConsole(variables: Readonly<Record<string, string>> = {}): Promise<OperatorConsole> {
  const siteUrl = await freeSiteUrl()
  const service = await startFakeRelayService({
    variables: {
      SVC_SITE_URL: siteUrl,
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '600',
      SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '300',
      SVC_RELAY_STOP_GRACE_SECONDS: '300',
      ...variables,
    },
  })
  const site = await startSite(service.api)
  return { service, site, browser: await signedInOperator(site) }
}
