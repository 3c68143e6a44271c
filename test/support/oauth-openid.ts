/**
 * An OpenID provider in this process (oidc-provider), for Twitch and Google. It signs in the account that the test has
 * set.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { decodeJwt, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import type { Configuration, Provider } from 'oidc-provider'
import { loadProviderLibrary } from '../../api/apps/provider-library.ts'
import {
  consentPage,
  type DoubleAccount,
  type IssuedTokens,
  type OAuthDouble,
  readForm,
  someAccount,
  startDoubleServer,
} from './oauth-double.ts'

/** Changes to ID tokens: other claims, or a signature with another key. */
interface Forgery {
  readonly claims?: (claims: JWTPayload) => JWTPayload
  readonly key?: CryptoKey
}

export interface OpenIdDouble extends OAuthDouble {
  /** Applies to all ID tokens from now on; without an argument they are valid again. */
  forge(forgery?: Forgery): void
}

export type Document = Readonly<Record<string, unknown>>

/** How one provider differs from the standard. */
interface Traits {
  readonly name: 'twitch' | 'google'
  /** The path prefix of the issuer, such as `/oauth2`, or an empty string. */
  readonly path: string
  readonly routes: {
    readonly authorization: string
    readonly token: string
    readonly jwks: string
  }
  readonly revocationPath: string
  /** Whether revoking one token ends its grant with all other tokens. */
  readonly revokesGrant: boolean
  readonly unknownTokenBody: Document
  readonly configuration: Configuration
  readonly accessTokenSeconds: number
  /** The scope that gives access to the address. */
  readonly emailScope: string
  readonly issuesRefreshToken: (authorization: Document) => boolean
  /** Changes the discovery document. */
  readonly discovery?: (document: Document) => Document
  /** Changes a token response. */
  readonly token?: (response: Document, grantType: unknown) => Document
  /** Changes the URL of a redirect. */
  readonly location?: (url: URL) => void
}

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

export async function startOpenIdDouble(traits: Traits): Promise<OpenIdDouble> {
  const { path, routes, name } = traits
  const server = await startDoubleServer({
    [`${path}/.well-known/openid-configuration`]: 'discovery',
    [`${path}${routes.token}`]: 'token',
    [`${path}${routes.jwks}`]: 'keys',
    [`${path}${traits.revocationPath}`]: 'revocation',
  })
  const client = { id: `${name}-client`, secret: `secret of ${name} for these tests` }
  const double = server.double(name, client, path)
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const issued: IssuedTokens[] = []
  const state: State = { double, issued, accounts: new Map(), grants: new Map(), key: privateKey, forgery: {} }
  const provider = await createProvider(traits, state, client)
  const handleRequest = provider.callback()
  server.handle = (request, response) => {
    const { url = '' } = request
    if (!url.startsWith(path)) return void response.writeHead(404).end()
    // Removes the session cookie: each visit signs in the account that the test has set.
    request.headers.cookie = request.headers.cookie?.replace(/(^|;) ?_session(\.sig)?=[^;]*/g, '')
    if (url === `${path}${traits.revocationPath}`) return revoke(provider, traits, state, client, request, response)
    if (url.startsWith(`${path}/interaction/`)) return answerInteraction(provider, state, request, response)
    Object.assign(request, { originalUrl: url, url: url.slice(path.length) })
    return handleRequest(request, response)
  }
  return Object.assign(double, {
    issuedTokens: issued,
    withdrawGrants: async () => {
      for (const grant of state.grants.values()) await grant.destroy()
    },
    forge: (forgery: Forgery = {}) => {
      state.forgery = forgery
    },
  })
}

async function createProvider(traits: Traits, state: State, client: { id: string; secret: string }): Promise<Provider> {
  const { Provider, interactionPolicy } = await loadProviderLibrary()
  const provider = await withoutExpectedWarnings(async () => {
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
      routes: traits.routes,
      claims: { openid: ['sub'], email: ['email', 'email_verified'] },
      findAccount: (_, sub) => ({
        accountId: sub,
        claims: async (_use, scope) => claimsOf(sub, state, scope.split(' ').includes(traits.emailScope)),
      }),
      issueRefreshToken: async (_, __, { grantId = '' }) =>
        traits.issuesRefreshToken(state.grants.get(grantId)?.authorization ?? {}),
      expiresWithSession: () => false,
      ttl: { ...lifetimes, AccessToken: traits.accessTokenSeconds },
      interactions: {
        url: (_, { uid }) => `${traits.path}/interaction/${uid}`,
        policy: interactionPolicy.base(),
      },
      ...traits.configuration,
      features: { devInteractions: { enabled: false }, ...traits.configuration.features },
    })
  })
  provider.Client.prototype.redirectUriAllowed = (uri) => /^http:\/\/(localhost|127\.0\.0\.1)[:/]/.test(uri)
  provider.use(async (ctx, next) => {
    await next()
    await applyTraits(traits, state, ctx)
  })
  return provider
}

const claimsOf = (sub: string, { accounts }: State, hasEmailScope: boolean) => {
  const { email, emailVerified } = accounts.get(sub) ?? someAccount
  const address = { email: email ?? undefined, email_verified: emailVerified as boolean }
  return { sub, ...(hasEmailScope && email !== null ? address : {}) }
}

interface ResponseContext {
  readonly path: string
  readonly response: { get(header: string): string }
  set(header: string, value: string): void
  body?: unknown
  readonly oidc?: { readonly params?: Document | undefined }
}

async function applyTraits(traits: Traits, state: State, ctx: ResponseContext): Promise<void> {
  const location = ctx.response.get('location')
  if (location && URL.canParse(location)) {
    const url = new URL(location)
    traits.location?.(url)
    ctx.set('location', url.href)
  }
  if (ctx.path === '/.well-known/openid-configuration') ctx.body = (traits.discovery ?? unchanged)(ctx.body as Document)
  if (ctx.path !== traits.routes.token) return
  const standard = ctx.body as Document
  const id_token = standard.id_token && (await signIdToken(decodeJwt(String(standard.id_token)), state))
  const body = (traits.token ?? unchanged)({ ...standard, id_token }, ctx.oidc?.params?.grant_type)
  if (typeof body.access_token === 'string')
    state.issued.push({ accessToken: body.access_token, refreshToken: body.refresh_token as string | undefined })
  ctx.body = body
}

const unchanged = (document: Document): Document => document

const signIdToken = (claims: JWTPayload, { forgery, key }: State): Promise<string> =>
  new SignJWT(forgery.claims?.(claims) ?? claims)
    .setProtectedHeader({ alg: 'RS256', kid: keyId })
    .sign(forgery.key ?? key)

/** Takes the place of the sign-in and consent pages: answers as the test has set. */
async function answerInteraction(
  provider: Provider,
  { double, accounts, grants }: State,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { params } = await provider.interactionDetails(request, response)
  const { account } = double
  if (double.asksForConsent && request.method !== 'POST')
    return void response.setHeader('content-type', 'text/html').end(consentPage(account.email, request.url ?? ''))
  if (double.asksForConsent && (await readForm(request)).get('decision') !== 'continue')
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

/** As Twitch and Google do and unlike RFC 7009, answers an unknown token with an error. */
async function revoke(
  provider: Provider,
  { revokesGrant, unknownTokenBody }: Traits,
  { grants }: State,
  client: { readonly id: string; readonly secret: string },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const form = await readForm(request)
  const answer = (status: number, body: object | undefined) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(body && JSON.stringify(body))
  if (form.get('client_id') !== client.id || form.get('client_secret') !== client.secret)
    return answer(401, { error: 'invalid_client' })
  const token = form.get('token') ?? ''
  const accessToken = await provider.AccessToken.find(token)
  const stored = accessToken ?? (revokesGrant ? await provider.RefreshToken.find(token) : undefined)
  const grant = grants.get(stored?.grantId ?? '')
  if (!stored || !grant || !(await provider.Grant.find(stored.grantId ?? ''))) return answer(400, unknownTokenBody)
  await (revokesGrant ? grant : stored).destroy()
  answer(200, revokesGrant ? {} : undefined)
}

/** The warning of each run about grants in memory. */
const expectedWarnings = /in-memory adapter/

async function withoutExpectedWarnings<Result>(work: () => Promise<Result>): Promise<Result> {
  const { warn } = globalThis.console
  const warnUnexpected = (...texts: unknown[]) => (expectedWarnings.test(String(texts[0])) ? undefined : warn(...texts))
  Object.assign(globalThis.console, { warn: warnUnexpected })
  try {
    return await work()
  } finally {
    Object.assign(globalThis.console, { warn })
  }
}
