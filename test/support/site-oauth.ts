/** The site with all three providers behind it, and people who go to them from its pages and come back. */
import type { OAuthProviderName } from '../../providers/oauth/provider.ts'
import { type OAuthApi, startOAuthApi } from './oauth-api.ts'
import type { DoubleAccount } from './oauth-double.ts'
import { freeSiteUrl, startSite, type TestSite } from './site.ts'
import type { Browser } from './site-browser.ts'
import type { Page } from './site-page.ts'

export interface OAuthSite extends OAuthApi {
  readonly site: TestSite
  /** The address that the provider sends the browser back to, for who left with this page; it is not opened. */
  away(provider: OAuthProviderName, account: DoubleAccount, leaving: Page): Promise<string>
  /** Leaves by the page's button for the provider, as this account, and comes back to where that leads. */
  through(browser: Browser, page: Page, provider: OAuthProviderName, account: DoubleAccount): Promise<Page>
}

export async function startOAuthSite(variables: Readonly<Record<string, string>> = {}): Promise<OAuthSite> {
  const oauth = await startOAuthApi({ SVC_SITE_URL: await freeSiteUrl(), ...variables })
  const site = await startSite(oauth.api)

  const away: OAuthSite['away'] = async (provider, account, { continuesTo }) => {
    if (!continuesTo) throw new Error('the page leads nowhere')
    oauth.providers[provider].account = account
    const back = await oauth.providers[provider].visit(continuesTo)
    return `/oauth/${provider}/callback?${new URLSearchParams({ ...back })}`
  }
  const through: OAuthSite['through'] = async (browser, page, provider, account) => {
    const leaving = await browser.submit(page, actionFor(page, provider))
    return browser.open(await away(provider, account, leaving), { from: 'cross-site' })
  }
  return { ...oauth, site, away, through }
}

const actionFor = ({ html }: Page, provider: OAuthProviderName): string =>
  html.includes(`/merge/oauth/${provider}`) ? `/merge/oauth/${provider}` : `/oauth/${provider}/start`
