/** The whole service with its site, and customers in front of a browser. */
import type { TestApi } from './api.ts'
import { paperRelays, startService, type TestService } from './relays.ts'
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

export async function startBillingSite(
  variables: Readonly<Record<string, string>> = {},
): Promise<{ service: TestService; api: TestApi; site: TestSite; newcomer(): Promise<SiteCustomer> }> {
  const siteUrl = await freeSiteUrl()
  const service = await startService({
    around: paperRelays().around,
    variables: { SVC_SITE_URL: siteUrl, ...variables },
  })
  const site = await startSite(service.api)
  return { service, api: service.api, site, newcomer: () => customerAt(site, service.api) }
}
