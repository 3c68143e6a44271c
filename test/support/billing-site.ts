/** The whole service with its site, and customers in front of a browser. */
import type { TestApi } from './api.ts'
import { eventually, paperRelays, startService, type TestService } from './relays.ts'
import { type Customer, newCustomer } from './sandbox-customers.ts'
import { freeSiteUrl, startSite, type TestSite } from './site.ts'
import type { Browser } from './site-browser.ts'

export interface SiteCustomer {
  readonly customer: Customer
  readonly browser: Browser
}

/** Somebody new who is signed in here. */
export async function customerAt(site: TestSite, api: TestApi): Promise<SiteCustomer> {
  const customer = await newCustomer(api)
  const browser = site.browser()
  browser.cookies.set('svc_session', customer.bearer)
  return { customer, browser }
}

export interface BillingSite {
  readonly service: TestService
  readonly api: TestApi
  readonly site: TestSite
  newcomer(): Promise<SiteCustomer>
  /** The session's relay, which is one of paper, is there and says so. */
  report(sessionId: string): Promise<void>
}

const relaySecret = 'a secret between relays and these tests'

export async function startBillingSite(variables: Readonly<Record<string, string>> = {}): Promise<BillingSite> {
  const siteUrl = await freeSiteUrl()
  const paper = paperRelays()
  const service = await startService({
    around: paper.around,
    variables: {
      SVC_SITE_URL: siteUrl,
      SVC_RELAY_AUTH_SECRET: relaySecret,
      // Relays of paper report once, and then are believed to run.
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '600',
      ...variables,
    },
  })
  const { api } = service
  const site = await startSite(api)
  const report = async (sessionId: string) => {
    const said = { session_id: sessionId, instance_id: paper.instanceOf(sessionId) }
    await eventually(
      () => api.post('/relay/health', said, { headers: { 'X-Relay-Auth': relaySecret } }),
      ({ status }) => status === 200,
    )
  }
  return { service, api, site, newcomer: () => customerAt(site, api), report }
}
