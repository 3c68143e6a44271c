/** The API reference: the page of the API, with the head of the site and the visitor's sign-in. */
import { renderToString } from 'preact-render-to-string'
import { referencePath } from '../api-reference.ts'
import { destinations } from '../document.tsx'
import type { PageHandler } from '../page.ts'

export const show: PageHandler = async ({ readReference, config, isSignedIn }) => {
  const { html, contentSecurityPolicy } = await readReference()
  const [, icon = ''] = /<link rel="icon" href="([^"]+)"/.exec(html) ?? []
  const head = renderToString(<Head brandName={config.brandName} icon={icon} isSignedIn={isSignedIn} />)
  return { rendered: { html: html.replace(headOfApi, () => head), contentSecurityPolicy } }
}

/** What the API shows to visitors who have no site. */
const headOfApi = /<!--head-->.*<!--\/head-->/s

interface HeadProps {
  readonly brandName: string
  /** The path of the icon. */
  readonly icon: string
  readonly isSignedIn: boolean
}

/**
 * Its classes are those of `api/openapi/assets/page.css`: the stylesheet of the site would change Scalar's elements.
 */
const Head = ({ brandName, icon, isSignedIn }: HeadProps) => (
  <>
    <nav class="site-head" aria-label="Main">
      <a class="site-brand" href="/">
        <img src={icon} alt="" width="30" height="30" />
        {brandName}
      </a>
      {isSignedIn ? <Navigation /> : <SignInLinks />}
    </nav>
    {isSignedIn ? (
      <aside class="site-access" aria-label="Access" data-access="signed-in">
        You are signed in. Requests that you send from this page use your account: no token is needed.
      </aside>
    ) : (
      <aside class="site-access" aria-label="Access" data-access="signed-out">
        <a href={signInPath}>Sign in</a> to send requests from this page with your account. Programs get a token from{' '}
        <a href="#tag/sign-in/POST/api/v1/auth/login">Sign in with a password</a>.
      </aside>
    )}
  </>
)

const signInPath = `/login?next=${encodeURIComponent(referencePath)}`

const Navigation = () => (
  <div class="site-links">
    {destinations.map(([name, path, label]) => (
      <a key={name} href={path}>
        {label}
      </a>
    ))}
    <form method="post" action="/sign-out">
      <button type="submit">Sign out</button>
    </form>
  </div>
)

const SignInLinks = () => (
  <div class="site-links">
    <a href={signInPath}>Sign in</a>
    <a class="button" href="/sign-up">
      Create account
    </a>
  </div>
)
