/** The site with doubles of all three providers, and sign-ins with them in a browser. */
import type { OAuthProviderName } from '../../providers/oauth/provider.ts'
import { type OAuthApi, startOAuthApi } from './oauth-api.ts'
import type { DoubleAccount } from './oauth-double.ts'
import { freeSiteUrl, startSite, type TestSite } from './site.ts'
import type { Browser } from './site-browser.ts'
import type { Page } from './site-page.ts'

export interface OAuthSite extends OAuthApi {
  readonly site: TestSite
  /**
   * Signs in at the provider as this account.
   * @param page forwards to the provider.
   * @returns path and query of the callback, which is not opened.
   */
  callbackPath(provider: OAuthProviderName, account: DoubleAccount, page: Page): Promise<string>
  /** Uses the page's button for the provider, signs in there as this account, and opens the callback. */
  signInWith(browser: Browser, page: Page, provider: OAuthProviderName, account: DoubleAccount): Promise<Page>
}

export async function startOAuthSite(variables: Readonly<Record<string, string>> = {}): Promise<OAuthSite> {
  const oauth = await startOAuthApi({ SVC_SITE_URL: await freeSiteUrl(), ...variables })
  const site = await startSite(oauth.api)

  const callbackPath: OAuthSite['callbackPath'] = async (provider, account, { path, continuesTo }) => {
    if (!continuesTo) throw new Error(`${path} does not forward to a provider`)
    oauth.providers[provider].account = account
    const parameters = await oauth.providers[provider].visit(continuesTo)
    return `/oauth/${provider}/callback?${new URLSearchParams({ ...parameters })}`
  }
  const signInWith: OAuthSite['signInWith'] = async (browser, page, provider, account) => {
    const mergeAction = `/merge/oauth/${provider}`
    const action = page.hasForm(mergeAction) ? mergeAction : `/oauth/${provider}/start`
    const forwarding = await browser.submit(page, action)
    return browser.open(await callbackPath(provider, account, forwarding), { from: 'cross-site' })
  }
  return { ...oauth, site, callbackPath, signInWith }
}
