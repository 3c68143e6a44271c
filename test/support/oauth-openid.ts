/** A real OpenID provider in this process, for the two that are one. Whoever comes is signed in as the test has chosen. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { decodeJwt, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import type { Configuration, Provider } from 'oidc-provider'
import {
  bodyOf,
  consentPage,
  type DoubleAccount,
  type IssuedTokens,
  type OAuthDouble,
  someAccount,
  startDoubleServer,
} from './oauth-double.ts'

/** How ID tokens are signed instead: with other claims, or with a key that is not the provider's. */
interface Forgery {
  readonly claims?: (claims: JWTPayload) => JWTPayload
  readonly key?: CryptoKey
}

export interface OpenIdDouble extends OAuthDouble {
  /** From now on; without `how` they are honest again. */
  forge(how?: Forgery): void
}

export type Document = Readonly<Record<string, unknown>>

/** What a provider does in its own way, on top of the standard. */
interface Ways {
  readonly name: 'twitch' | 'google'
  /** Where it is on its server, such as `/oauth2`, or nothing. */
  readonly path: string
  readonly routes: {
    readonly authorization: string
    readonly token: string
    readonly jwks: string
  }
  readonly revocation: string
  /** Whether one token that is revoked ends the grant, with all others. */
  readonly revokesGrant: boolean
  readonly unknownToken: Document
  readonly configuration: Configuration
  readonly accessTokenSeconds: number
  /** The address is told only to those who may know it. */
  readonly emailNeedsScope: string
  readonly givesRefreshToken: (authorization: Document) => boolean
  readonly discovery?: (document: Document) => Document
  readonly token?: (answer: Document, grantType: unknown) => Document
  /** Where it sends the browser. */
  readonly location?: (url: URL) => void
}

/** What the requests of one double share. */
interface State {
  readonly double: OAuthDouble
  readonly issued: IssuedTokens[]
  readonly accounts: Map<string, DoubleAccount>
  readonly grants: Map<string, { readonly authorization: Document; destroy(): Promise<void> }>
  readonly key: CryptoKey
  forgery: Forgery
}

const keyId = 'only'
const lifetimes = { Interaction: 3600, Grant: 86_400, Session: 3600, RefreshToken: 86_400, IdToken: 3600 }

export async function startOpenIdDouble(ways: Ways): Promise<OpenIdDouble> {
  const { path, routes, name } = ways
  const server = await startDoubleServer({
    [`${path}/.well-known/openid-configuration`]: 'discovery',
    [`${path}${routes.token}`]: 'token',
    [`${path}${routes.jwks}`]: 'keys',
    [`${path}${ways.revocation}`]: 'revocation',
  })
  const client = { id: `${name}-client`, secret: `secret of ${name} for these tests` }
  const double = server.double(name, client, path)
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const issued: IssuedTokens[] = []
  const state: State = { double, issued, accounts: new Map(), grants: new Map(), key: privateKey, forgery: {} }
  const provider = await createProvider(ways, state, client)
  const answer = provider.callback()
  server.handle = (request, response) => {
    const { url = '' } = request
    if (!url.startsWith(path)) return void response.writeHead(404).end()
    // Nobody stays signed in here: who comes next is for the test to say.
    request.headers.cookie = request.headers.cookie?.replace(/(^|;) ?_session(\.sig)?=[^;]*/g, '')
    if (url === `${path}${ways.revocation}`) return revoke(provider, ways, state, client, request, response)
    if (url.startsWith(`${path}/interaction/`)) return decide(provider, state, request, response)
    Object.assign(request, { originalUrl: url, url: url.slice(path.length) })
    return answer(request, response)
  }
  return Object.assign(double, {
    tokensIssued: issued,
    revoke: async () => {
      for (const grant of state.grants.values()) await grant.destroy()
    },
    forge: (how: Forgery = {}) => {
      state.forgery = how
    },
  })
}

async function createProvider(ways: Ways, state: State, client: { id: string; secret: string }): Promise<Provider> {
  const { Provider, interactionPolicy } = await quietly(loadOidcProvider)
  const provider = await quietly(async () => {
    return new Provider(state.double.issuerUrl, {
      clients: [
        {
          client_id: client.id,
          client_secret: client.secret,
          redirect_uris: ['http://localhost/'],
          token_endpoint_auth_method: 'client_secret_post',
          grant_types: ['authorization_code', 'refresh_token'],
        },
      ],
      jwks: { keys: [{ ...(await exportJWK(state.key)), alg: 'RS256', use: 'sig', kid: keyId }] },
      cookies: { keys: ['a key of these tests'] },
      routes: ways.routes,
      claims: { openid: ['sub'], email: ['email', 'email_verified'] },
      findAccount: (_, sub) => ({
        accountId: sub,
        claims: async (_use, scope) => claimsOf(sub, state, scope.split(' ').includes(ways.emailNeedsScope)),
      }),
      issueRefreshToken: async (_, __, { grantId = '' }) =>
        ways.givesRefreshToken(state.grants.get(grantId)?.authorization ?? {}),
      expiresWithSession: () => false,
      ttl: { ...lifetimes, AccessToken: ways.accessTokenSeconds },
      interactions: {
        url: (_, { uid }) => `${ways.path}/interaction/${uid}`,
        policy: interactionPolicy.base(),
      },
      ...ways.configuration,
      features: { devInteractions: { enabled: false }, ...ways.configuration.features },
    })
  })
  provider.Client.prototype.redirectUriAllowed = (uri) => /^http:\/\/(localhost|127\.0\.0\.1)[:/]/.test(uri)
  provider.use(async (ctx, next) => {
    await next()
    await inItsOwnWay(ways, state, ctx)
  })
  return provider
}

const claimsOf = (sub: string, { accounts }: State, mayKnowEmail: boolean) => {
  const { email, emailVerified } = accounts.get(sub) ?? someAccount
  const address = { email: email ?? undefined, email_verified: emailVerified as boolean }
  return { sub, ...(mayKnowEmail && email !== null ? address : {}) }
}

interface Answering {
  readonly path: string
  readonly response: { get(header: string): string }
  set(header: string, value: string): void
  body?: unknown
  readonly oidc?: { readonly params?: Document | undefined }
}

/** Changes an answer of the standard's to one of this provider's. */
async function inItsOwnWay(ways: Ways, state: State, ctx: Answering): Promise<void> {
  const location = ctx.response.get('location')
  if (location && URL.canParse(location)) {
    const url = new URL(location)
    ways.location?.(url)
    ctx.set('location', url.href)
  }
  if (ctx.path === '/.well-known/openid-configuration') ctx.body = (ways.discovery ?? same)(ctx.body as Document)
  if (ctx.path !== ways.routes.token) return
  const honest = ctx.body as Document
  const id_token = honest.id_token && (await signed(decodeJwt(String(honest.id_token)), state))
  const answer = (ways.token ?? same)({ ...honest, id_token }, ctx.oidc?.params?.grant_type)
  if (typeof answer.access_token === 'string')
    state.issued.push({ accessToken: answer.access_token, refreshToken: answer.refresh_token as string | undefined })
  ctx.body = answer
}

const same = (document: Document): Document => document

const signed = (claims: JWTPayload, { forgery, key }: State): Promise<string> =>
  new SignJWT(forgery.claims?.(claims) ?? claims)
    .setProtectedHeader({ alg: 'RS256', kid: keyId })
    .sign(forgery.key ?? key)

/** Where other providers have pages to sign in and to agree, here stands what the test has chosen. */
async function decide(
  provider: Provider,
  { double, accounts, grants }: State,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { params } = await provider.interactionDetails(request, response)
  const { account } = double
  if (double.asks && request.method !== 'POST')
    return void response.setHeader('content-type', 'text/html').end(consentPage(account.email, request.url ?? ''))
  if (double.asks && (await bodyOf(request)).get('decision') !== 'continue')
    return provider.interactionFinished(request, response, { error: 'access_denied' })
  const accountId = account.providerUserId
  accounts.set(accountId, account)
  const grant = new provider.Grant({ accountId, clientId: String(params.client_id) })
  grant.addOIDCScope(String(params.scope))
  grant.addOIDCClaims(['email', 'email_verified'])
  const grantId = await grant.save()
  grants.set(grantId, { authorization: params, destroy: () => grant.destroy() })
  await provider.interactionFinished(request, response, { login: { accountId }, consent: { grantId } })
}

/** As the two do it, and not as the standard has it: an unknown token is an error. */
async function revoke(
  provider: Provider,
  { revokesGrant, unknownToken }: Ways,
  { grants }: State,
  client: { readonly id: string; readonly secret: string },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const asked = await bodyOf(request)
  const answer = (status: number, body: object | undefined) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(body && JSON.stringify(body))
  if (asked.get('client_id') !== client.id || asked.get('client_secret') !== client.secret)
    return answer(401, { error: 'invalid_client' })
  const token = asked.get('token') ?? ''
  const accessToken = await provider.AccessToken.find(token)
  const found = accessToken ?? (revokesGrant ? await provider.RefreshToken.find(token) : undefined)
  const grant = grants.get(found?.grantId ?? '')
  if (!found || !grant || !(await provider.Grant.find(found.grantId ?? ''))) return answer(400, unknownToken)
  await (revokesGrant ? grant : found).destroy()
  answer(200, revokesGrant ? {} : undefined)
}

async function loadOidcProvider(): Promise<typeof import('oidc-provider')> {
  // It is made for Node 22, and this is all that it misses in Node 20.
  if (!('parse' in URL))
    Object.assign(URL, {
      parse: (url: string, base?: string) => (URL.canParse(url, base) ? new URL(url, base) : null),
    })
  return import('oidc-provider')
}

/** Two warnings that every run would print: of the runtime, and of grants that are kept in memory. */
const harmless = /Unsupported runtime|in-memory adapter/

async function quietly<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  const { warn } = globalThis.console
  const say = (...texts: unknown[]) => (harmless.test(String(texts[0])) ? undefined : warn(...texts))
  Object.assign(globalThis.console, { warn: say })
  try {
    return await work()
  } finally {
    Object.assign(globalThis.console, { warn })
  }
}
