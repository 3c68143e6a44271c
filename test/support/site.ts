/** The site in this process in front of an api, and browsers without scripts that visit it. */

import { readSiteConfig } from '../../platform/config.ts'
import { freePort } from '../../platform/embedded/ports.ts'
import { Lifecycle } from '../../platform/lifecycle.ts'
import { createLog } from '../../platform/log.ts'
import { startSite as startListening } from '../../web/start-site.ts'
import { startApi, type TestApi } from './api.ts'
import { atEnd } from './at-end.ts'
import { Browser } from './site-browser.ts'

export interface TestSite {
  /** `http://localhost:<port>`: browsers take Secure cookies from there. */
  readonly url: string
  /** Every line that the site logged, from debug up. */
  readonly logged: readonly string[]
  /** One that was never here. */
  browser(): Browser
  /** Ends it in good order, before the end of the tests. */
  stop(): Promise<void>
}

/** An address for a site that is started later: the api needs it first, for its links. */
export const freeSiteUrl = async (): Promise<string> => `http://localhost:${await freePort()}`

/**
 * Starts it and stops it after the tests of this file.
 * @param variables of the site's environment. `SVC_SITE_URL` is the api's unless it is named, and says the port.
 */
export async function startSite(
  api: { readonly url: string; readonly services?: TestApi['services'] },
  variables: Readonly<Record<string, string>> = {},
): Promise<TestSite> {
  const ofApi = api.services?.config.siteUrl
  const url = variables.SVC_SITE_URL ?? (ofApi && !ofApi.endsWith(':8081') ? ofApi : await freeSiteUrl())
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

/** Both, knowing of each other. */
export async function startApiAndSite(
  variables: { readonly api?: Readonly<Record<string, string>>; readonly site?: Readonly<Record<string, string>> } = {},
): Promise<{ api: TestApi; site: TestSite }> {
  const url = await freeSiteUrl()
  const api = await startApi({ SVC_SITE_URL: url, ...variables.api })
  return { api, site: await startSite(api, { SVC_SITE_URL: url, ...variables.site }) }
}
