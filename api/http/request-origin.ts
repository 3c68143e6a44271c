/**
 * Which pages may make a browser send an operator's writes. A browser remembers a Basic password and adds it to whatever
 * any site's form sends here, so the password alone does not show that an operator meant the request.
 */
import type { Config } from '../../platform/config/config.ts'
import { Refusal } from './refusals.ts'

type ReadHeader = (name: string) => string | undefined

/**
 * @returns a function that refuses with `forbidden` what a page of another origin sent. Browsers send `Origin` with every
 * POST, and Fetch Metadata besides; no page can forge either. A request with neither comes from no browser.
 */
export function createOriginCheck({
  apiUrl,
  siteUrl,
}: Pick<Config, 'apiUrl' | 'siteUrl'>): (header: ReadHeader) => void {
  const [apiOrigin, siteOrigin] = [new URL(apiUrl).origin, new URL(siteUrl).origin]

  const isOurs = (header: ReadHeader): boolean => {
    const [origin, fetchSite = 'same-origin'] = [header('origin'), header('sec-fetch-site')]
    // A page of the site is another origin than the api, on the same site or not.
    if (origin === siteOrigin) return true
    return (origin === undefined || origin === apiOrigin) && fetchSite === 'same-origin'
  }

  return (header) => {
    if (!isOurs(header)) throw new Refusal('forbidden', { message: 'This was sent from a page of another site.' })
  }
}
