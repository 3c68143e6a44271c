/** What a page is: data that the site's router is made from. Pages ask the api and present; they decide nothing. */
import type { VNode } from 'preact'
import type { ApiResponse, Visitor } from './api.ts'
import type { Cookie } from './cookies.ts'

export interface Visit {
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** The fields of a posted form; empty for other requests. */
  readonly form: URLSearchParams
  /** Path and query of this very page, to come back to. */
  readonly here: string
  /** Where browsers see this site: scheme, host and port. */
  readonly origin: string
  readonly visitor: Visitor
  /** Whether the browser brought a sign-in; the api judges what it is worth. */
  readonly isSignedIn: boolean
  cookie(name: string): string | undefined
  /** Asks the api as this visitor. A sign-in that the api does not take any more is renewed, or the login page shown. */
  callApi<Body = Record<string, unknown>>(
    method: string,
    path: string,
    body?: object,
    headers?: Readonly<Record<string, string>>,
  ): Promise<ApiResponse<Body>>
  /** The same without the sign-in. */
  callApiAnonymously<Body = Record<string, unknown>>(
    method: string,
    path: string,
    body?: object,
  ): Promise<ApiResponse<Body>>
}

interface Cookies {
  readonly cookies?: readonly Cookie[]
}

export type PageResult = Cookies &
  (
    | {
        readonly title: string
        readonly page: VNode
        readonly status?: number
        /** Files of `web/assets` that this page loads besides those that every page has. */
        readonly scripts?: readonly string[]
      }
    /** To another page of this site, by GET. */
    | { readonly redirectTo: string }
    /**
     * To any address, by a page of ours that leads on. For leaving to a provider (a form may not be redirected there), and
     * for arriving from one: the next request then comes from this site, and brings its Strict cookies.
     */
    | { readonly continueTo: string; readonly message: string }
  )

export interface PageRoute {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** `user` pages send others to the login page, and bring them back. */
  readonly caller: 'anyone' | 'user'
  /** Of a form: the page where one goes on who had to sign in first. The start unless given. */
  readonly returnTo?: string
  /** Reached from other sites by design: it makes do without the cookies that those requests do not bring. */
  readonly allowsCrossSiteEntry?: true
  handle(visit: Visit): Promise<PageResult> | PageResult
}
