/** The HTML document around every page. */
import type { ComponentChildren, VNode } from 'preact'
import { renderToString } from 'preact-render-to-string'
import type { LegalPages } from '../platform/config/legal.ts'
import { type Assets, fontName } from './assets.ts'
import { Brand } from './brand.tsx'
import { Icon, type IconName } from './icons.tsx'
import { LegalNavigation } from './legal-links.tsx'
import { LinkPreviewTags, previewImageName } from './link-preview.tsx'
import type { Feed, Layout, LinkPreview, Section } from './page.ts'

interface Frame {
  readonly assets: Assets
  readonly brandName: string
  /** `data-page` of the main landmark. */
  readonly name: string
  readonly title: string
  readonly isSignedIn: boolean
  /** The address that the page refreshes to at once. */
  readonly continueTo?: string
  /** Scripts besides `site.js`, by their names in `web/assets`. */
  readonly scripts?: readonly string[] | undefined
  /** Stylesheets besides `site.css`, by their names in `web/assets`. */
  readonly styles?: readonly string[] | undefined
  readonly feed?: Feed | undefined
  readonly layout?: Layout | undefined
  readonly section?: Section | undefined
  readonly preview?: LinkPreview | undefined
  readonly isUnlisted?: true | undefined
  /** Of this site, without a slash at its end. */
  readonly siteUrl: string
  /** Whether the service shows its emails on a page. */
  readonly hasMailbox: boolean
  readonly legal: LegalPages
}

export const renderDocument = (frame: Frame, page: VNode): string =>
  `<!doctype html>${renderToString(<Html {...frame}>{page}</Html>)}`

type HtmlProps = Frame & { readonly children: ComponentChildren }

const Html = ({ children, ...frame }: HtmlProps) => (
  <html lang="en">
    <Head {...frame} />
    <body>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <div class="top-row">
          <Brand name={frame.brandName} />
          {frame.isSignedIn ? <Navigation section={frame.section} /> : <SignInLinks page={frame.name} />}
        </div>
      </header>
      <main id="main" class={`layout-${frame.layout ?? 'wide'}`} data-page={frame.name}>
        {children}
      </main>
      <Footer {...frame} />
    </body>
  </html>
)

const Head = ({ assets, brandName, title, continueTo, scripts = [], styles = [], feed, ...frame }: Frame) => (
  <head>
    <meta charset="utf-8" />
    <title>{`${title} · ${brandName}`}</title>
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    {/*
      Overrides the no-referrer header, with which browsers without Fetch Metadata would send forms with
      `Origin: null`.
    */}
    <meta name="referrer" content={frame.isUnlisted ? 'no-referrer' : 'same-origin'} />
    {frame.isUnlisted ? <meta name="robots" content="noindex" /> : null}
    {frame.preview ? (
      <LinkPreviewTags
        title={title}
        description={frame.preview.description}
        brandName={brandName}
        image={frame.siteUrl + assets.pathOf(previewImageName)}
      />
    ) : null}
    {continueTo ? <meta http-equiv="refresh" content={`0;url=${continueTo}`} /> : null}
    <link rel="preload" href={assets.pathOf(fontName)} as="font" type="font/woff2" crossorigin="anonymous" />
    {['site.css', ...styles].map((style) => (
      <link key={style} rel="stylesheet" href={assets.pathOf(style)} />
    ))}
    <link rel="icon" href={assets.pathOf('icon.svg')} />
    {feed ? <link rel="alternate" type="application/atom+xml" href={feed.path} title={feed.title} /> : null}
    {['site.js', ...scripts].map((script) => (
      <script key={script} type="module" src={assets.pathOf(script)} />
    ))}
  </head>
)

export const destinations: readonly (readonly [Section, path: string, label: string, icon: IconName])[] = [
  ['relays', '/relays', 'Relays', 'radio'],
  ['history', '/history', 'History', 'clock'],
  ['usage', '/usage', 'Usage', 'chart-column'],
  ['account', '/account', 'Account', 'circle-user-round'],
]

const Navigation = ({ section }: { readonly section: Section | undefined }) => (
  <nav class="main-nav destinations" aria-label="Main">
    {destinations.map(([name, path, label, icon]) => (
      <a key={name} href={path} aria-current={name === section ? 'page' : undefined}>
        <Icon name={icon} />
        {label}
      </a>
    ))}
    <form method="post" action="/sign-out">
      <button class="quiet" type="submit">
        <Icon name="log-out" />
        Sign out
      </button>
    </form>
  </nav>
)

/** The pages for signing in have their own links to each other. */
const pagesWithoutSignInLinks = new Set(['login', 'sign-up', 'forwarding'])

const SignInLinks = ({ page }: { readonly page: string }) =>
  pagesWithoutSignInLinks.has(page) ? null : (
    <nav class="main-nav" aria-label="Main">
      <a href="/login">Sign in</a>
      <a class="button" href="/sign-up">
        Create account
      </a>
    </nav>
  )

const Footer = ({ brandName, hasMailbox, legal }: Pick<Frame, 'brandName' | 'hasMailbox' | 'legal'>) => (
  <footer class="bottom">
    <div class="bottom-row">
      <span>{brandName}</span>
      <nav aria-label="Service">
        <a class="link" href="/help">
          Help
        </a>
        <a class="link" href="/docs">
          API reference
        </a>
        <a class="link" href="/status">
          Status
        </a>
        {hasMailbox ? (
          <a class="link" href="/mailbox">
            Mailbox
          </a>
        ) : null}
      </nav>
      <LegalNavigation legal={legal} />
    </div>
  </footer>
)
