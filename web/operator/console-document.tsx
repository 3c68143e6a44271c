/** The HTML document around the pages of the operator console, with a navigation of its own. */
import type { ComponentChildren, VNode } from 'preact'
import { renderToString } from 'preact-render-to-string'
import type { Assets } from '../assets.ts'

const sections = {
  overview: ['/operator', 'Overview'],
  users: ['/operator/users', 'Users'],
  relays: ['/operator/sessions', 'Relays'],
  billing: ['/operator/billing', 'Billing'],
  instances: ['/operator/instances', 'Instances'],
  regions: ['/operator/regions', 'Regions'],
  jobs: ['/operator/jobs', 'Jobs'],
  audit: ['/operator/audit', 'Audit'],
} as const satisfies Record<string, readonly [path: string, label: string]>

/**
 * The entry of the navigation that the page belongs to. The sign-in page has no navigation; an error page belongs to no
 * entry.
 */
export type ConsoleSection = keyof typeof sections | 'sign-in' | 'error'

interface Frame {
  readonly assets: Assets
  readonly brandName: string
  /** `data-page` of the main landmark. */
  readonly name: string
  readonly title: string
  readonly section: ConsoleSection
  /** Scripts besides `site.js` and `refresh.js`, by their names in `web/assets`. */
  readonly scripts?: readonly string[] | undefined
  /** Stylesheets besides `site.css` and `console.css`, by their names in `web/assets`. */
  readonly styles?: readonly string[] | undefined
}

export const renderConsole = (frame: Frame, page: VNode): string =>
  `<!doctype html>${renderToString(<Html {...frame}>{page}</Html>)}`

type HtmlProps = Frame & { readonly children: ComponentChildren }

const Html = ({ assets, brandName, name, title, section, scripts = [], styles = [], children }: HtmlProps) => (
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <title>{`${title} · ${brandName} operator console`}</title>
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <meta name="robots" content="noindex, nofollow" />
      {/*
        Overrides the no-referrer header, with which browsers without Fetch Metadata would send forms with
        `Origin: null`.
      */}
      <meta name="referrer" content="same-origin" />
      {['site.css', 'console.css', ...styles].map((style) => (
        <link key={style} rel="stylesheet" href={assets.pathOf(style)} />
      ))}
      <link rel="icon" href={assets.pathOf('icon.svg')} />
      {['site.js', 'refresh.js', ...scripts].map((script) => (
        <script key={script} type="module" src={assets.pathOf(script)} />
      ))}
    </head>
    <body class="console">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="console-top">
        <a class="console-brand" href="/operator">
          {`${brandName} operator console`}
        </a>
        {section === 'sign-in' ? null : <SignOut />}
      </header>
      {section === 'sign-in' ? null : <Navigation current={section} />}
      <main id="main" data-page={name}>
        {children}
      </main>
    </body>
  </html>
)

const SignOut = () => (
  <form method="post" action="/operator/sign-out">
    <button class="quiet" type="submit">
      Sign out
    </button>
  </form>
)

const Navigation = ({ current }: { readonly current: ConsoleSection }) => (
  <nav class="console-nav" aria-label="Console">
    {Object.entries(sections).map(([section, [path, label]]) => (
      <a key={section} href={path} aria-current={section === current ? 'page' : undefined}>
        {label}
      </a>
    ))}
  </nav>
)
