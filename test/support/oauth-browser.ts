/** The way of a browser through a provider's pages, without one. */

/** What the provider sent back with the browser. */
export interface CameBack {
  readonly code: string
  readonly state: string
  readonly iss?: string
}

const stepsMax = 10

/** Follows redirects, keeps cookies, and agrees where it is asked. Fails with the page on which it got stuck. */
export async function followBrowser(authorizationUrl: string | URL): Promise<CameBack> {
  const home = new URL(authorizationUrl).searchParams.get('redirect_uri') ?? ''
  const cookies = new Map<string, string>()
  let at = new URL(authorizationUrl)
  let form: URLSearchParams | undefined
  for (let step = 0; step < stepsMax; step += 1) {
    const response = await fetch(at, {
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
    if (!location && !action) throw new Error(`the browser got stuck at ${at.pathname}: ${response.status} ${page}`)
    form = location ? undefined : new URLSearchParams({ decision: 'continue' })
    at = new URL(location ?? action ?? '', at)
    if (at.href.startsWith(home)) return cameBack(at)
  }
  throw new Error(`the browser never came back from ${at.href}`)
}

function cameBack({ searchParams, href }: URL): CameBack {
  const [code, state, iss] = ['code', 'state', 'iss'].map((name) => searchParams.get(name))
  if (!code || !state) throw new Error(`the browser came back with neither code nor state: ${href}`)
  return { code, state, ...(iss ? { iss } : {}) }
}
