/**
 * Protection against cross-site requests. Browsers store a Basic password, for example, and add it to requests that
 * forms on other sites send, so the password alone does not prove that its owner intended the request.
 */
import type { Config } from '../../platform/config/config.ts'
import { Refusal } from './refusals.ts'
import type { ReadHeader } from './requests.ts'

export type CheckOrigin = (header: ReadHeader) => void

/**
 * @returns a function that refuses requests from pages of other origins with `forbidden`. Browsers send `Origin` with
 * every POST, and the Fetch Metadata headers; no page can forge either. A request without both does not come from a
 * browser.
 */
export function createOriginCheck({ apiUrl, siteUrl }: Pick<Config, 'apiUrl' | 'siteUrl'>): CheckOrigin {
  const [apiOrigin, siteOrigin] = [new URL(apiUrl).origin, new URL(siteUrl).origin]

  const isAllowed = (header: ReadHeader): boolean => {
    const [origin, fetchSite = 'same-origin'] = [header('origin'), header('sec-fetch-site')]
    // The site may be on another origin than the API, and even on another registrable domain.
    if (origin === siteOrigin) return true
    return (origin === undefined || origin === apiOrigin) && fetchSite === 'same-origin'
  }

  return (header) => {
    if (!isAllowed(header))
      throw new Refusal('forbidden', { message: 'This request was sent from a page of another site.' })
  }
}
