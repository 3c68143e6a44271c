/** Follows the pages of a provider with plain HTTP requests, without a browser. */

/** The query parameters that the provider added to the redirect URI. */
export interface CallbackParameters {
  readonly code: string
  readonly state: string
  readonly iss?: string
}

const stepsMax = 10

/**
 * Follows redirects, keeps cookies and consents where the provider asks. Throws with the page that it could not leave.
 */
export async function followBrowser(authorizationUrl: string | URL): Promise<CallbackParameters> {
  const redirectUri = new URL(authorizationUrl).searchParams.get('redirect_uri') ?? ''
  const cookies = new Map<string, string>()
  let url = new URL(authorizationUrl)
  let form: URLSearchParams | undefined
  for (let step = 0; step < stepsMax; step += 1) {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form ? { method: 'POST', body: form } : {}),
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    const page = await response.text()
    const action = /<form method="post" action="([^"]+)"/.exec(page)?.[1]
    if (!location && !action) throw new Error(`no redirect and no form at ${url.pathname}: ${response.status} ${page}`)
    form = location ? undefined : new URLSearchParams({ decision: 'continue' })
    url = new URL(location ?? action ?? '', url)
    if (url.href.startsWith(redirectUri)) return parseCallback(url)
  }
  throw new Error(`no callback after ${stepsMax} pages, the last one was ${url.href}`)
}

function parseCallback({ searchParams, href }: URL): CallbackParameters {
  const [code, state, iss] = ['code', 'state', 'iss'].map((name) => searchParams.get(name))
  if (!code || !state) throw new Error(`the callback lacks code or state: ${href}`)
  return { code, state, ...(iss ? { iss } : {}) }
}
