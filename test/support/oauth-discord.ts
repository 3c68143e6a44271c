/**
 * Discord's stand-in, written from its documentation: OAuth 2 with PKCE and rotating refresh tokens, and one question to its
 * API. It is strict: no code without a challenge, and no token without the verifier of that challenge.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  bodyOf,
  consentPage,
  type DoubleAccount,
  type IssuedTokens,
  type OAuthDouble,
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
  const tokensIssued: IssuedTokens[] = []
  const double: OAuthDouble = Object.assign(server.double('discord', client), {
    account: { ...someAccount, providerUserId: '80351110224678912' },
    tokensIssued,
    revoke: async () => refreshTokens.clear(),
  })

  const issue = ({ account, scope }: Grant) => {
    const grant = { account, scope }
    const [access_token, refresh_token] = [random(), random()]
    accessTokens.set(access_token, grant)
    refreshTokens.set(refresh_token, grant)
    tokensIssued.push({ accessToken: access_token, refreshToken: refresh_token })
    return { access_token, token_type: 'Bearer', expires_in: 604_800, refresh_token, scope }
  }

  async function authorize(request: IncomingMessage, response: ServerResponse, asked: URLSearchParams) {
    const redirectUri = asked.get('redirect_uri') ?? ''
    const challenge = asked.get('code_challenge') ?? ''
    if (asked.get('client_id') !== client.id || asked.get('response_type') !== 'code' || !URL.canParse(redirectUri))
      return void response.writeHead(400).end('Invalid OAuth2 request')
    if (asked.get('code_challenge_method') !== 'S256' || !/^[\w-]{43}$/.test(challenge))
      return void response.writeHead(400).end('Invalid OAuth2 request')
    if (double.asks && request.method !== 'POST')
      return void response.setHeader('content-type', 'text/html').end(consentPage(double.account.email, `?${asked}`))
    const agrees = !double.asks || (await bodyOf(request)).get('decision') === 'continue'
    const code = random()
    if (agrees) codes.set(code, { account: double.account, scope: asked.get('scope') ?? '', redirectUri, challenge })
    const home = new URL(redirectUri)
    home.searchParams.set(agrees ? 'code' : 'error', agrees ? code : 'access_denied')
    home.searchParams.set('state', asked.get('state') ?? '')
    response.writeHead(302, { location: home.href }).end()
  }

  async function token(request: IncomingMessage, response: ServerResponse) {
    if (!request.headers['content-type']?.startsWith('application/x-www-form-urlencoded'))
      return json(response, 400, { message: '400: Bad Request', code: 0 })
    const asked = await bodyOf(request)
    if (asked.get('client_id') !== client.id || asked.get('client_secret') !== client.secret)
      return json(response, 401, { error: 'invalid_client' })
    const [code, refreshToken] = [asked.get('code') ?? '', asked.get('refresh_token') ?? '']
    const issued = codes.get(code)
    const byCode = issued && isCompletedBy(issued, asked) ? issued : undefined
    const granted = asked.get('grant_type') === 'refresh_token' ? refreshTokens.get(refreshToken) : byCode
    codes.delete(code)
    refreshTokens.delete(refreshToken)
    if (!granted)
      return json(response, 400, { error: 'invalid_grant', error_description: 'Invalid "code" in request.' })
    json(response, 200, issue(granted))
  }

  /** Whatever token of a grant is presented, all of that grant end. */
  async function revoke(request: IncomingMessage, response: ServerResponse) {
    const asked = await bodyOf(request)
    if (asked.get('client_id') !== client.id || asked.get('client_secret') !== client.secret)
      return json(response, 401, { error: 'invalid_client' })
    const token = asked.get('token') ?? ''
    const granted = accessTokens.get(token) ?? refreshTokens.get(token)
    for (const tokens of [accessTokens, refreshTokens])
      for (const [one, { account }] of tokens)
        if (account.providerUserId === granted?.account.providerUserId) tokens.delete(one)
    json(response, 200, {})
  }

  function whoAmI(request: IncomingMessage, response: ServerResponse) {
    const grant = accessTokens.get(/^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '')
    if (!grant) return json(response, 401, { message: '401: Unauthorized', code: 0 })
    const { providerUserId: id, email, emailVerified: verified } = grant.account
    const told = grant.scope.split(' ').includes('email') ? { email, verified } : {}
    json(response, 200, { id, username: 'someone', discriminator: '0', global_name: null, avatar: null, ...told })
  }

  server.handle = (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', double.issuerUrl)
    if (pathname === '/oauth2/authorize') return authorize(request, response, searchParams)
    if (pathname === '/api/oauth2/token' && request.method === 'POST') return token(request, response)
    if (pathname === '/api/oauth2/token/revoke' && request.method === 'POST') return revoke(request, response)
    if (pathname === '/api/v10/users/@me') return whoAmI(request, response)
    return json(response, 404, { message: '404: Not Found', code: 0 })
  }

  return double
}

/** Whether the request for tokens is of the same client and the same round as the one for the code. */
const isCompletedBy = ({ redirectUri, challenge }: Code, asked: URLSearchParams): boolean =>
  redirectUri === asked.get('redirect_uri') &&
  challenge ===
    createHash('sha256')
      .update(asked.get('code_verifier') ?? '')
      .digest('base64url')

const json = (response: ServerResponse, status: number, answer: object): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
