/**
 * Checks the origin of operators' writes. A browser saves a Basic password and adds it to requests from any site's form, so
 * the password alone does not prove that an operator intended the request.
 */
import type { Config } from '../../platform/config/config.ts'
import { Refusal } from './refusals.ts'

type ReadHeader = (name: string) => string | undefined

/**
 * @returns a function that refuses requests from pages of other origins with `forbidden`. Browsers send `Origin` with every
 * POST, and also Fetch Metadata; pages cannot forge either. A request with neither does not come from a browser.
 */
export function createOriginCheck({
  apiUrl,
  siteUrl,
}: Pick<Config, 'apiUrl' | 'siteUrl'>): (header: ReadHeader) => void {
  const [apiOrigin, siteOrigin] = [new URL(apiUrl).origin, new URL(siteUrl).origin]

  const isOurs = (header: ReadHeader): boolean => {
    const [origin, fetchSite = 'same-origin'] = [header('origin'), header('sec-fetch-site')]
    // The site's origin differs from the api's, on the same registrable domain or not.
    if (origin === siteOrigin) return true
    return (origin === undefined || origin === apiOrigin) && fetchSite === 'same-origin'
  }

  return (header) => {
    if (!isOurs(header))
      throw new Refusal('forbidden', { message: 'The request was sent from a page of another origin.' })
  }
}
