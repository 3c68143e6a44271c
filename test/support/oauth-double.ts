/** What the stand-ins for Twitch, Google and Discord have in common: a server on a free port that can be made to fail. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { atEnd } from './at-end.ts'
import { type CameBack, followBrowser } from './oauth-browser.ts'

/** Who signs in at the provider. */
export interface DoubleAccount {
  readonly providerUserId: string
  readonly email: string | null
  /** Google may send text. */
  readonly emailVerified: boolean | 'true' | 'false'
}

export type Breakage = 'status 500' | 'html' | '10 MB' | 'nothing' | 'redirect'
export type Endpoint = 'discovery' | 'token' | 'keys' | 'userinfo' | 'revocation'

export interface IssuedTokens {
  readonly accessToken: string
  readonly refreshToken: string | undefined
}

export interface OAuthDouble {
  /** For `startApi`: makes it the provider that the service is registered with. */
  readonly variables: Readonly<Record<string, string>>
  /** Where it is, as the service is told. */
  readonly issuerUrl: string
  /** Who signs in next. */
  account: DoubleAccount
  /** Shows a page with the buttons "Continue as …" and "Cancel" instead of going on by itself. */
  asks: boolean
  /** Goes where a browser would go, to the end: the page of ours that it comes back to, which is not opened. */
  visit(authorizationUrl: string | URL): Promise<CameBack>
  /** Lets an endpoint fail from now on; without `how` all of them are well again. */
  break(how?: Breakage, at?: Endpoint): void
  /** How often an endpoint was asked. */
  asked(endpoint: Endpoint | 'trap'): number
  /** Bytes that were sent to whoever asks for 10 MB, before they hung up. */
  bytesSent(): number
  /** All that were ever issued, the newest last. */
  readonly tokensIssued: readonly IssuedTokens[]
  /** Everybody withdraws what they granted: their refresh tokens are worth nothing from now on. */
  revoke(): Promise<void>
}

export const someAccount: DoubleAccount = {
  providerUserId: '4711',
  email: 'someone@example.com',
  emailVerified: true,
}

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown

export interface DoubleServer {
  /** From now on answers everything that is not broken. */
  handle: Handler
  /** What every provider's stand-in offers; each adds its own. */
  double(name: string, client: { readonly id: string; readonly secret: string }, path?: string): OAuthDouble
}

/** @param endpoints their paths. */
export async function startDoubleServer(endpoints: Readonly<Record<string, Endpoint>>): Promise<DoubleServer> {
  const broken = new Map<string, Breakage>()
  const counts = new Map<string, number>()
  const sent = { bytes: 0 }
  const asked = (endpoint: string) => counts.get(endpoint) ?? 0
  const httpServer = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? ''
    const endpoint = path === '/trap' ? 'trap' : (endpoints[path] ?? 'other')
    counts.set(endpoint, asked(endpoint) + 1)
    const breakage = broken.get(endpoint)
    if (breakage) fail[breakage](response, sent)
    else
      void Promise.resolve(server.handle(request, response)).catch((error) => response.writeHead(500).end(`${error}`))
  })
  await new Promise<void>((resolve) => httpServer.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    httpServer.close()
    httpServer.closeAllConnections()
  })
  const origin = `http://127.0.0.1:${(httpServer.address() as AddressInfo).port}`
  const server: DoubleServer = {
    handle: (_, response) => response.writeHead(503).end(),
    double: (name, client, path = '') => ({
      variables: {
        [`SVC_${name.toUpperCase()}_CLIENT_ID`]: client.id,
        [`SVC_${name.toUpperCase()}_CLIENT_SECRET`]: client.secret,
        [`SVC_${name.toUpperCase()}_ISSUER_URL`]: `${origin}${path}`,
      },
      issuerUrl: `${origin}${path}`,
      account: someAccount,
      asks: false,
      visit: followBrowser,
      break: (how, at = 'token') => (how ? void broken.set(at, how) : broken.clear()),
      asked,
      bytesSent: () => sent.bytes,
      tokensIssued: [],
      revoke: async () => {},
    }),
  }
  return server
}

const fail: Record<Breakage, (response: ServerResponse, sent: { bytes: number }) => void> = {
  'status 500': (response) =>
    response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":"server_error"}'),
  html: (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>We are down</h1>'),
  redirect: (response) => response.writeHead(307, { location: '/trap' }).end(),
  nothing: () => {},
  '10 MB': (response, sent) => {
    const part = 'x'.repeat(10_000)
    response.writeHead(200, { 'content-type': 'application/json' }).write('{"access_token":"')
    const more = () => {
      while (!response.destroyed && sent.bytes < 10_000_000) {
        sent.bytes += part.length
        if (!response.write(part)) return void response.once('drain', more)
      }
      response.end('"}')
    }
    more()
  },
}

/** A page with two buttons, for doubles that ask. */
export const consentPage = (email: string | null, action: string): string => `<!doctype html><title>Sign in</title>
<form method="post" action="${action}">
<button name="decision" value="continue">Continue as ${email ?? 'someone without an address'}</button>
<button name="decision" value="cancel">Cancel</button>
</form>`

/** The body of a small request. */
export async function bodyOf(request: IncomingMessage): Promise<URLSearchParams> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return new URLSearchParams(text)
}
