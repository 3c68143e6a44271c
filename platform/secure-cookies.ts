/** Whether browsers keep the cookies of a site, which are Secure. */
import { isLoopback } from './loopback.ts'

/** @param siteUrl the address of the site in a browser: over HTTPS, or on the machine of the browser. */
export function keepsSecureCookies(siteUrl: string): boolean {
  const { protocol, hostname } = new URL(siteUrl)
  const isLocal = /(^|\.)localhost$/.test(hostname) || isLoopback(hostname.replace(/^\[|\]$/g, ''))
  return protocol === 'https:' || isLocal
}

export const noSecureCookies = (siteUrl: string): string =>
  `Nobody can sign in at ${siteUrl}: browsers keep the cookies of sign-ins at https: addresses and at localhost only. Set SVC_SITE_URL to an https: address, with a proxy for TLS (docs/deploy.md)`
