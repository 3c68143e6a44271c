/** The common part of the doubles for Twitch, Google and Discord: a server on a free port that can be made to fail. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { atEnd } from './at-end.ts'
import { type CallbackParameters, followBrowser } from './oauth-browser.ts'

/** The account that signs in at the provider. */
export interface DoubleAccount {
  readonly providerUserId: string
  readonly email: string | null
  /** Google may send a string. */
  readonly emailVerified: boolean | 'true' | 'false'
}

export type Failure = 'status 500' | 'html' | '10 MB' | 'nothing' | 'redirect'
export type Endpoint = 'discovery' | 'token' | 'keys' | 'userinfo' | 'revocation'

export interface IssuedTokens {
  readonly accessToken: string
  readonly refreshToken: string | undefined
}

export interface OAuthDouble {
  /** Environment variables that configure this double as the provider. */
  readonly variables: Readonly<Record<string, string>>
  readonly issuerUrl: string
  /** The account that the next visit signs in. */
  account: DoubleAccount
  /** Shows a page with the buttons "Continue as …" and "Cancel" instead of consenting at once. */
  asksForConsent: boolean
  /** Follows the pages to the callback, which is not requested. */
  visit(authorizationUrl: string | URL): Promise<CallbackParameters>
  /** Makes an endpoint fail until `recover`; `token` by default. */
  failWith(failure: Failure, endpoint?: Endpoint): void
  /** Ends all failures. */
  recover(): void
  /** The number of requests to an endpoint. `trap` is the target of the failure `redirect`. */
  requestCount(endpoint: Endpoint | 'trap'): number
  /** Bytes sent by the failure `10 MB` before the client closed the connection. */
  bytesSent(): number
  /** All issued tokens, the newest last. */
  readonly issuedTokens: readonly IssuedTokens[]
  /** Withdraws all grants: their refresh tokens are not valid any more. */
  withdrawGrants(): Promise<void>
}

export const someAccount: DoubleAccount = {
  providerUserId: '4711',
  email: 'someone@example.com',
  emailVerified: true,
}

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown

export interface DoubleServer {
  /** Answers all requests to endpoints that do not fail. */
  handle: Handler
  /** The common members of a double. */
  double(name: string, client: { readonly id: string; readonly secret: string }, path?: string): OAuthDouble
}

/** @param endpoints their paths. */
export async function startDoubleServer(endpoints: Readonly<Record<string, Endpoint>>): Promise<DoubleServer> {
  const failures = new Map<string, Failure>()
  const counts = new Map<string, number>()
  const sent = { bytes: 0 }
  const requestCount = (endpoint: string) => counts.get(endpoint) ?? 0
  const httpServer = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? ''
    const endpoint = path === '/trap' ? 'trap' : (endpoints[path] ?? 'other')
    counts.set(endpoint, requestCount(endpoint) + 1)
    const failure = failures.get(endpoint)
    if (failure) answerWith[failure](response, sent)
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
      asksForConsent: false,
      visit: followBrowser,
      failWith: (failure, endpoint = 'token') => void failures.set(endpoint, failure),
      recover: () => failures.clear(),
      requestCount,
      bytesSent: () => sent.bytes,
      issuedTokens: [],
      withdrawGrants: async () => {},
    }),
  }
  return server
}

const answerWith: Record<Failure, (response: ServerResponse, sent: { bytes: number }) => void> = {
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

export const consentPage = (email: string | null, action: string): string => `<!doctype html><title>Sign in</title>
<form method="post" action="${action}">
<button name="decision" value="continue">Continue as ${email ?? 'someone without an address'}</button>
<button name="decision" value="cancel">Cancel</button>
</form>`

export async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return new URLSearchParams(text)
}
