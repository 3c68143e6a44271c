/** What a page receives and replies. Pages call the API and render what it replies. */
import type { VNode } from 'preact'
import type { ApiClient } from '../client/client.ts'
import type { SiteConfig } from '../platform/config/site.ts'
import type { Visitor } from './api.ts'
import type { Cookie } from './cookies.ts'
import type { ConsoleSection } from './operator/console-document.tsx'

/** A request to a page. */
export interface Visit {
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** The fields of a posted form; empty for other requests. */
  readonly form: URLSearchParams
  /**
   * The posted form of a route with `hasFiles`. Read after the API has accepted the visitor's access token, since the
   * form is held in memory. Throws `BodyTooLargeError`.
   */
  readFormWithFiles(bytesMax: number): Promise<FormData>
  /** Scheme, host and port of this site in a browser. */
  readonly origin: string
  /** Host and port that the browser asked for, which may be others. */
  readonly host: string
  /** What pages show of the configuration, such as prices. */
  readonly config: Pick<SiteConfig, 'brandName' | 'canConnectApps' | 'legal' | 'prices' | 'relayTime' | 'supportEmail'>
  readonly visitor: Visitor
  /** Whether the browser sent an access token. Only the API can verify it. */
  readonly isSignedIn: boolean
  cookie(name: string): string | undefined
  /**
   * Calls the API with the visitor's access token. When the API rejects the token, the sign-in is renewed and the page
   * requested again, or the visitor is sent to the login page.
   */
  readonly api: ApiClient
  /** Calls the API without an access token. */
  readonly anonymousApi: ApiClient
  /** The page of the API reference as the API renders it. Rejects with `ApiUnreachableError`. */
  readReference(): Promise<RenderedPage>
  /**
   * Calls the API as the operator who is signed in to the console. When the API rejects the operator session, the
   * operator is sent to the console's sign-in page; when it has no such resource, the site replies with its 404 page.
   */
  readonly operatorApi: ApiClient
}

interface Cookies {
  readonly cookies?: readonly Cookie[]
}

/** The width of a page: for content, for a form, or set by the page's own sections. */
export type Layout = 'wide' | 'narrow' | 'full'

/** The entry of the main navigation that a page belongs to. */
export type Section = 'relays' | 'history' | 'usage' | 'account'

export interface Feed {
  readonly path: string
  readonly title: string
}

export interface LinkPreview {
  /** One or two sentences. */
  readonly description: string
}

/** A document to render. */
export interface Document {
  /** A stable name, rendered as `data-page`: tests identify pages by it, since titles and headings may be reworded. */
  readonly name: string
  readonly title: string
  readonly page: VNode
  /** 200 unless given. */
  readonly status?: number
  /** Files of `web/assets` to load besides `site.js`. */
  readonly scripts?: readonly string[]
  /** Renders the page in the frame of the operator console. */
  readonly console?: ConsoleSection
  /** Files of `web/assets` to load besides `site.css`. */
  readonly styles?: readonly string[]
  /** An Atom feed of what the page shows, which feed readers find by it. */
  readonly feed?: Feed
  /** `wide` unless given. */
  readonly layout?: Layout
  readonly section?: Section
  /** What other sites and chats show of a link to the page, beside its title; nothing without it. */
  readonly preview?: LinkPreview
  /** Keeps the page out of search engines, its address from other sites, and the visitor's account off the page. */
  readonly isUnlisted?: true
  /** Origins of other hosts that the page's scripts may send requests to, in addition to this site. */
  readonly connectTo?: readonly string[]
  /** After how many seconds the browser requests the page again by itself. Only for the reply to a GET. */
  readonly retryAfterSeconds?: number
}

/** A complete HTML document of the API. */
export interface RenderedPage {
  readonly html: string
  readonly contentSecurityPolicy: string
}

/** A file to save. */
export interface Download {
  /** ASCII letters, digits, dots and hyphens only. */
  readonly fileName: string
  readonly contentType: string
  readonly content: string
  /** Whether browsers show it in place of saving it. */
  readonly isShown?: true
}

export type PageResult = Cookies &
  (
    | Document
    /** Redirects to another page of this site with 303. */
    | { readonly redirectTo: string }
    /**
     * Renders a page that refreshes to any address. Needed to leave for another site after a form (`form-action`
     * forbids a redirect), and to arrive from one: the next request is then same-site and sends the Strict cookies.
     */
    | { readonly continueTo: string; readonly message: string }
    | { readonly download: Download }
    | { readonly rendered: RenderedPage }
  )

export type PageHandler = (visit: Visit) => Promise<PageResult> | PageResult

/** A line of `pages.ts`. */
export interface PageRoute {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /**
   * A page for `user` redirects visitors who are not signed in to the login page, and back afterwards. A page for
   * `operator` does the same with the sign-in page of the console.
   */
  readonly caller: 'anyone' | 'user' | 'operator'
  /** Of a form: the page to open after a visitor had to sign in. `/` unless given. */
  readonly returnTo?: string
  /** Of a form with files: `form` is empty, and the page reads the form itself. */
  readonly hasFiles?: true
  /** Whether other sites link to it on purpose. It must work without Strict cookies. */
  readonly allowsCrossSiteEntry?: true
  readonly handle: PageHandler
}
