/**
 * Double of Discord, written from its documentation: OAuth 2 with PKCE, rotating refresh tokens and a user endpoint. It
 * requires a challenge for a code, and the verifier of that challenge for tokens.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  consentPage,
  type DoubleAccount,
  type IssuedTokens,
  type OAuthDouble,
  readForm,
  someAccount,
  startDoubleServer,
} from './oauth-double.ts'

interface Grant {
  readonly account: DoubleAccount
  readonly scope: string
}

interface Code extends Grant {
  readonly redirectUri: string
  readonly challenge: string
}

const client = { id: '157730590492196864', secret: 'secret of discord for these tests' }
const random = () => randomBytes(15).toString('base64url')

export async function startDiscord(): Promise<OAuthDouble> {
  const server = await startDoubleServer({
    '/api/oauth2/token': 'token',
    '/api/oauth2/token/revoke': 'revocation',
    '/api/v10/users/@me': 'userinfo',
  })
  const codes = new Map<string, Code>()
  const accessTokens = new Map<string, Grant>()
  const refreshTokens = new Map<string, Grant>()
  const issuedTokens: IssuedTokens[] = []
  const double: OAuthDouble = Object.assign(server.double('discord', client), {
    account: { ...someAccount, providerUserId: '80351110224678912' },
    issuedTokens,
    withdrawGrants: async () => refreshTokens.clear(),
  })

  const issue = ({ account, scope }: Grant) => {
    const grant = { account, scope }
    const [access_token, refresh_token] = [random(), random()]
    accessTokens.set(access_token, grant)
    refreshTokens.set(refresh_token, grant)
    issuedTokens.push({ accessToken: access_token, refreshToken: refresh_token })
    return { access_token, token_type: 'Bearer', expires_in: 604_800, refresh_token, scope }
  }

  async function authorize(request: IncomingMessage, response: ServerResponse, query: URLSearchParams) {
    const redirectUri = query.get('redirect_uri') ?? ''
    const challenge = query.get('code_challenge') ?? ''
    if (query.get('client_id') !== client.id || query.get('response_type') !== 'code' || !URL.canParse(redirectUri))
      return void response.writeHead(400).end('Invalid OAuth2 request')
    if (query.get('code_challenge_method') !== 'S256' || !/^[\w-]{43}$/.test(challenge))
      return void response.writeHead(400).end('Invalid OAuth2 request')
    if (double.asksForConsent && request.method !== 'POST')
      return void response.setHeader('content-type', 'text/html').end(consentPage(double.account.email, `?${query}`))
    const agrees = !double.asksForConsent || (await readForm(request)).get('decision') === 'continue'
    const code = random()
    if (agrees) codes.set(code, { account: double.account, scope: query.get('scope') ?? '', redirectUri, challenge })
    const home = new URL(redirectUri)
    home.searchParams.set(agrees ? 'code' : 'error', agrees ? code : 'access_denied')
    home.searchParams.set('state', query.get('state') ?? '')
    response.writeHead(302, { location: home.href }).end()
  }

  async function token(request: IncomingMessage, response: ServerResponse) {
    if (!request.headers['content-type']?.startsWith('application/x-www-form-urlencoded'))
      return json(response, 400, { message: '400: Bad Request', code: 0 })
    const form = await readForm(request)
    if (form.get('client_id') !== client.id || form.get('client_secret') !== client.secret)
      return json(response, 401, { error: 'invalid_client' })
    const [code, refreshToken] = [form.get('code') ?? '', form.get('refresh_token') ?? '']
    const issued = codes.get(code)
    const byCode = issued && matchesRequest(issued, form) ? issued : undefined
    const granted = form.get('grant_type') === 'refresh_token' ? refreshTokens.get(refreshToken) : byCode
    codes.delete(code)
    refreshTokens.delete(refreshToken)
    if (!granted)
      return json(response, 400, { error: 'invalid_grant', error_description: 'Invalid "code" in request.' })
    json(response, 200, issue(granted))
  }

  /** Revoking one token ends all tokens of its grant. */
  async function revoke(request: IncomingMessage, response: ServerResponse) {
    const form = await readForm(request)
    if (form.get('client_id') !== client.id || form.get('client_secret') !== client.secret)
      return json(response, 401, { error: 'invalid_client' })
    const token = form.get('token') ?? ''
    const granted = accessTokens.get(token) ?? refreshTokens.get(token)
    for (const tokens of [accessTokens, refreshTokens])
      for (const [issued, { account }] of tokens)
        if (account.providerUserId === granted?.account.providerUserId) tokens.delete(issued)
    json(response, 200, {})
  }

  function currentUser(request: IncomingMessage, response: ServerResponse) {
    const grant = accessTokens.get(/^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '')
    if (!grant) return json(response, 401, { message: '401: Unauthorized', code: 0 })
    const { providerUserId: id, email, emailVerified: verified } = grant.account
    const emailFields = grant.scope.split(' ').includes('email') ? { email, verified } : {}
    json(response, 200, {
      id,
      username: 'someone',
      discriminator: '0',
      global_name: null,
      avatar: null,
      ...emailFields,
    })
  }

  server.handle = (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', double.issuerUrl)
    if (pathname === '/oauth2/authorize') return authorize(request, response, searchParams)
    if (pathname === '/api/oauth2/token' && request.method === 'POST') return token(request, response)
    if (pathname === '/api/oauth2/token/revoke' && request.method === 'POST') return revoke(request, response)
    if (pathname === '/api/v10/users/@me') return currentUser(request, response)
    return json(response, 404, { message: '404: Not Found', code: 0 })
  }

  return double
}

/** Whether the token request has the redirect URI and the verifier of the authorization request. */
const matchesRequest = ({ redirectUri, challenge }: Code, form: URLSearchParams): boolean =>
  redirectUri === form.get('redirect_uri') &&
  challenge ===
    createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')

const json = (response: ServerResponse, status: number, answer: object): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
