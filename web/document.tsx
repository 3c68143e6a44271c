/** The HTML document around every page. */
import type { ComponentChildren, VNode } from 'preact'
import { renderToString } from 'preact-render-to-string'
import type { Assets } from './assets.ts'

interface Frame {
  readonly assets: Assets
  /** `data-page` of the main landmark. */
  readonly name: string
  readonly title: string
  readonly isSignedIn: boolean
  /** The address that the page refreshes to at once. */
  readonly continueTo?: string
  /** Scripts besides `site.js`, by their names in `web/assets`. */
  readonly scripts?: readonly string[] | undefined
}

export const renderDocument = (frame: Frame, page: VNode): string =>
  `<!doctype html>${renderToString(<Html {...frame}>{page}</Html>)}`

type HtmlProps = Frame & { readonly children: ComponentChildren }

const Html = ({ assets, name, title, isSignedIn, continueTo, scripts = [], children }: HtmlProps) => (
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <title>{`${title} · Relay`}</title>
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      {/* Overrides the no-referrer header, with which browsers without Fetch Metadata would send forms with `Origin: null`. */}
      <meta name="referrer" content="same-origin" />
      {continueTo ? <meta http-equiv="refresh" content={`0;url=${continueTo}`} /> : null}
      <link rel="stylesheet" href={assets.pathOf('site.css')} />
      <link rel="icon" href={assets.pathOf('icon.svg')} />
      {['site.js', ...scripts].map((script) => (
        <script key={script} type="module" src={assets.pathOf(script)} />
      ))}
    </head>
    <body>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href="/">
          Relay
        </a>
        {isSignedIn ? <Navigation /> : null}
      </header>
      <main id="main" data-page={name}>
        {children}
      </main>
    </body>
  </html>
)

const Navigation = () => (
  <nav aria-label="Main">
    <a href="/relays">Relays</a>
    <a href="/account">Account</a>
    <form method="post" action="/sign-out">
      <button class="quiet" type="submit">
        Sign out
      </button>
    </form>
  </nav>
)
