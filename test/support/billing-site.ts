/** The whole service with its site and the billing sandbox, and customers who are signed in in a browser. */
import type { TestApi } from './api.ts'
import { type FakeRelayService, startFakeRelayService } from './fake-relays.ts'
import { eventually } from './relays.ts'
import { type Customer, newCustomer } from './sandbox-customers.ts'
import { freeSiteUrl, startSite, type TestSite } from './site.ts'
import type { Browser } from './site-browser.ts'

export interface SiteCustomer {
  readonly customer: Customer
  readonly browser: Browser
}

/** A new account that is signed in at this site. */
export async function newSiteCustomer(site: TestSite, api: TestApi): Promise<SiteCustomer> {
  const customer = await newCustomer(api)
  const browser = site.browser()
  browser.cookies.set('svc_session', customer.bearer)
  return { customer, browser }
}

export interface BillingSite {
  readonly service: FakeRelayService
  readonly api: TestApi
  readonly site: TestSite
  newCustomer(): Promise<SiteCustomer>
  /** Sends the first health report of the session's relay, once its instance exists. */
  report(sessionId: string): Promise<void>
}

export async function startBillingSite(variables: Readonly<Record<string, string>> = {}): Promise<BillingSite> {
  const siteUrl = await freeSiteUrl()
  const service = await startFakeRelayService({
    variables: {
      SVC_SITE_URL: siteUrl,
      // A relay reports once, and counts as healthy for this time.
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '600',
      ...variables,
    },
  })
  const { api } = service
  const site = await startSite(api, { SVC_PLAN_PRICE: '12.49' })
  const report = async (sessionId: string) => {
    await eventually(
      () => service.sendReport(sessionId),
      ({ status }) => status === 200,
    )
  }
  return { service, api, site, newCustomer: () => newSiteCustomer(site, api), report }
}
