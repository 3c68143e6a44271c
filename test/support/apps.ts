/** Apps that are connected by HTTP requests alone, step by step, as a browser and the app send them. */
import { createHash, randomBytes } from 'node:crypto'
import { appRedirectUris, findApp, sourceApp } from '../../domain/identity/apps.ts'
import { generateSigningKey } from '../../platform/embedded/secrets.ts'
import type { Client } from './api.ts'
import { findFreePort } from './ports.ts'

/** Variables of an api whose address is known, with apps. */
export async function appVariables(): Promise<Record<string, string>> {
  const port = await findFreePort()
  return {
    PORT: String(port),
    SVC_API_URL: `http://127.0.0.1:${port}`,
    SVC_OBS_PROVIDER_ID: 'provider-of-these-tests',
    SVC_OAUTH_SIGNING_KEYS: generateSigningKey(),
  }
}

export interface AppTokens {
  readonly access_token: string
  readonly refresh_token: string
  readonly token_type: string
  readonly expires_in: number
  readonly scope: string
}

export interface FlatError {
  readonly error: string
  readonly error_description: string
}

export interface FlatAnswer<Body> {
  readonly status: number
  readonly headers: Headers
  readonly body: Body & Partial<FlatError>
}

/** Posts a form to an endpoint of the provider. */
export async function postForm<Body = object>(
  api: Pick<Client, 'url'>,
  path: string,
  fields: Readonly<Record<string, string>>,
): Promise<FlatAnswer<Body>> {
  const response = await fetch(`${api.url}/oauth${path}`, { method: 'POST', body: new URLSearchParams(fields) })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) }
}

export const exchange = (api: Pick<Client, 'url'>, fields: Readonly<Record<string, string>>) =>
  postForm<AppTokens>(api, '/token', fields)

export const refresh = (api: Pick<Client, 'url'>, refreshToken: string, clientId = sourceApp) =>
  exchange(api, { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: clientId })

export interface BegunRequest {
  readonly id: string
  readonly state: string
  readonly verifier: string
  readonly redirectUri: string
  readonly clientId: string
  /** What the browser sends back. */
  readonly cookie: string
}

/** The query of an authorization request, as the OBS source sends it. */
export function authorizationQuery(clientId = sourceApp, changes: Readonly<Record<string, string>> = {}) {
  const verifier = randomBytes(32).toString('base64url')
  const state = randomBytes(16).toString('hex')
  const [redirectUri = ''] = appRedirectUris
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: (findApp(clientId)?.scopes ?? []).join(' '),
    state,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...changes,
  })
  return { query, verifier, state, redirectUri }
}

/** The browser opens the address that the app has given it. */
export async function begin(
  api: Pick<Client, 'url'>,
  clientId = sourceApp,
  changes: Readonly<Record<string, string>> = {},
): Promise<BegunRequest> {
  const { query, ...kept } = authorizationQuery(clientId, changes)
  const response = await fetch(`${api.url}/oauth/auth?${query}`, { redirect: 'manual' })
  const id = new URL(response.headers.get('location') ?? 'none:').pathname.split('/').at(-1) ?? ''
  if (response.status !== 303 || id === '') throw new Error(`${response.status} ${await response.text()}`)
  return { id, clientId, cookie: cookiesOf(response), ...kept }
}

export const cookiesOf = (response: Response): string =>
  response.headers
    .getSetCookie()
    .map((cookie) => cookie.split(';')[0])
    .join('; ')

/** The user decides on the page. @returns where the browser goes next. */
export async function decide(
  api: Client,
  request: BegunRequest,
  bearer: string,
  decision: 'approve' | 'deny' = 'approve',
): Promise<string> {
  const path = `/auth/apps/requests/${request.id}/${decision}`
  const { status, body } = await api.post<{ continue_url: string }>(path, undefined, { bearer })
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
  return body.continue_url
}

/** The browser goes on with its cookie. @returns the address of the app, with its query. */
export async function comeBack(continueUrl: string, cookie: string): Promise<URL> {
  const response = await fetch(continueUrl, { redirect: 'manual', headers: { cookie } })
  const location = response.headers.get('location')
  if (!location) throw new Error(`${response.status} ${await response.text()}`)
  return new URL(location)
}

/** The exchange of a code, as the app sends it. */
export const codeFields = (request: BegunRequest, code: string): Record<string, string> => ({
  grant_type: 'authorization_code',
  code,
  redirect_uri: request.redirectUri,
  client_id: request.clientId,
  code_verifier: request.verifier,
})

/** A code for an approved request. */
export async function approvedCode(api: Client, bearer: string, clientId = sourceApp, scope?: string) {
  const request = await begin(api, clientId, scope === undefined ? {} : { scope })
  const url = await comeBack(await decide(api, request, bearer), request.cookie)
  return { request, code: url.searchParams.get('code') ?? '' }
}

/** Connects an app to the account of the bearer. */
export async function connectApp(
  api: Client,
  bearer: string,
  clientId = sourceApp,
  scope?: string,
): Promise<AppTokens> {
  const { request, code } = await approvedCode(api, bearer, clientId, scope)
  const { status, body } = await exchange(api, codeFields(request, code))
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
  return body
}
