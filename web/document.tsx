/** The frame around every page. */
import type { ComponentChildren, VNode } from 'preact'
import { renderToString } from 'preact-render-to-string'
import type { Assets } from './assets.ts'

interface Frame {
  readonly assets: Assets
  readonly title: string
  readonly isSignedIn: boolean
  /** Leads on to this address by itself. */
  readonly continueTo?: string
  /** Further scripts, by their names in `web/assets`. */
  readonly scripts?: readonly string[] | undefined
}

export const html = (frame: Frame, page: VNode): string =>
  `<!doctype html>${renderToString(<Document {...frame}>{page}</Document>)}`

type DocumentParts = Frame & { readonly children: ComponentChildren }

const Document = ({ assets, title, isSignedIn, continueTo, scripts = [], children }: DocumentParts) => (
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <title>{`${title} · Relay`}</title>
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      {/* The header says no-referrer; with that, forms of browsers without Fetch Metadata would name no Origin to be judged by. */}
      <meta name="referrer" content="same-origin" />
      {continueTo ? <meta http-equiv="refresh" content={`0;url=${continueTo}`} /> : null}
      <link rel="stylesheet" href={assets.pathOf('site.css')} />
      <link rel="icon" href={assets.pathOf('icon.svg')} />
      {['site.js', ...scripts].map((name) => (
        <script key={name} type="module" src={assets.pathOf(name)} />
      ))}
    </head>
    <body>
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header class="top">
        <a class="brand" href="/">
          Relay
        </a>
        {isSignedIn ? <Navigation /> : null}
      </header>
      <main id="main">{children}</main>
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
