/** Starts the site in this process in front of an API, and gives tests browsers without scripts. */

import { readSiteConfig } from '../../platform/config/site.ts'
import { Lifecycle } from '../../platform/lifecycle.ts'
import { createLog } from '../../platform/log.ts'
import { startSite as startListening } from '../../web/start-site.ts'
import { startApi, type TestApi } from './api.ts'
import { atEnd } from './at-end.ts'
import { findFreePort } from './ports.ts'
import { Browser } from './site-browser.ts'

export interface TestSite {
  /** `http://localhost:<port>`: browsers accept Secure cookies from there. */
  readonly url: string
  /** Every line that the site logged, from level debug. */
  readonly logged: readonly string[]
  /** A browser without cookies. */
  browser(): Browser
  /** Stops the site gracefully, before the end of the tests. */
  stop(): Promise<void>
}

/** A free address for a site that starts after its API, whose links contain the address. */
export const freeSiteUrl = async (): Promise<string> => `http://localhost:${await findFreePort()}`

/**
 * Starts the site, and stops it after the tests of this file.
 * @param variables environment of the site. `SVC_SITE_URL` defaults to the API's and determines the port.
 */
export async function startSite(
  api: { readonly url: string; readonly services?: TestApi['services'] },
  variables: Readonly<Record<string, string>> = {},
): Promise<TestSite> {
  const urlOfApi = api.services?.config.siteUrl
  const url = variables.SVC_SITE_URL ?? (urlOfApi && !urlOfApi.endsWith(':8081') ? urlOfApi : await freeSiteUrl())
  const config = readSiteConfig({
    SVC_API_URL: api.url,
    SVC_SITE_URL: url,
    SVC_SITE_PORT: new URL(url).port || '0',
    ...variables,
  })
  const logged: string[] = []
  const log = createLog('site', 'debug', { write: (line) => void logged.push(line) })
  const life = new Lifecycle(log)
  const { port } = await startListening({ config, log, life })
  atEnd(() => life.stop())
  const home = `http://localhost:${port}`
  return { url: home, logged, browser: () => new Browser(home), stop: () => life.stop() }
}

/** Starts an API and a site that are configured with each other's addresses. */
export async function startApiAndSite(
  variables: { readonly api?: Readonly<Record<string, string>>; readonly site?: Readonly<Record<string, string>> } = {},
): Promise<{ api: TestApi; site: TestSite }> {
  const url = await freeSiteUrl()
  const api = await startApi({ SVC_SITE_URL: url, ...variables.api })
  return { api, site: await startSite(api, { SVC_SITE_URL: url, ...variables.site }) }
}
