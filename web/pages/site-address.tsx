/** What to do when a browser keeps no cookies of the site, or opened it at another address than the configured one. */
import { keepsSecureCookies } from '../../platform/secure-cookies.ts'
import type { Document } from '../page.ts'

interface Place {
  /** Scheme, host and port that are configured. */
  readonly origin: string
  /** Host and port that the browser asked for. A proxy may have changed it. */
  readonly host: string
}

export const isOtherAddress = ({ origin, host }: Place): boolean => host !== new URL(origin).host

/** @param retryPath of this site, for a browser that keeps cookies now. */
export const cookiesRefusedPage = (place: Place, retryPath: string): Document => ({
  name: 'cookies-refused',
  status: 400,
  title: 'Your browser keeps no cookies of this site',
  layout: 'narrow',
  page: (
    <section class="card narrow">
      <h1>Your browser keeps no cookies of this site</h1>
      <p>You can’t sign in without cookies.</p>
      <AddressAdvice {...place} path={retryPath} />
      {keepsSecureCookies(place.origin) ? (
        <>
          <p data-advice="allow">
            {isOtherAddress(place) ? 'If you’re there already, allow' : 'Allow'} cookies for{' '}
            {new URL(place.origin).hostname} in your browser’s settings, or delete the old ones, and try again.
          </p>
          <a class="button second wide" href={retryPath}>
            Try again
          </a>
        </>
      ) : null}
    </section>
  ),
})

/** A form was sent from a page of this site at another address, where it is not accepted. */
export const otherAddressPage = (place: Place): Document => ({
  name: 'other-address',
  status: 403,
  title: 'This isn’t the address of this site',
  layout: 'narrow',
  page: (
    <section class="card narrow">
      <h1>This isn’t the address of this site</h1>
      <p>Nothing was changed.</p>
      <AddressAdvice {...place} path="/" />
    </section>
  ),
})

function AddressAdvice({ origin, host, path }: Place & { readonly path: string }) {
  if (!keepsSecureCookies(origin))
    return (
      <p data-advice="https">
        The address of this site is {origin}. Browsers keep the cookies of sign-ins at https: addresses only, so the
        operator of this site has to set SVC_SITE_URL to one.
      </p>
    )
  if (!isOtherAddress({ origin, host })) return null
  const isOnItsMachine = origin.startsWith('http:')
  return (
    <p data-advice="address">
      Open this site at <a href={`${origin}${path}`}>{origin}</a>
      {isOnItsMachine
        ? ', on the machine that it runs on. To use it from others, its operator has to set SVC_SITE_URL to an https: address.'
        : '.'}
    </p>
  )
}
