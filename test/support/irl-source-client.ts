/**
 * A client written from the description of the provider protocol, version 1, as the OBS source `obs-irl-source`
 * behaves: what it reads, sends and tolerates. It knows nothing of this service but the address that its user types.
 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'

const ports = Array.from({ length: 10 }, (_, index) => 47_420 + index)
const requestMillisMax = 5000
/** For the user to sign in and approve. */
const signInMillisMax = 120_000
const userAgent = 'obs-irl-source/2.1.0'

export interface IrlIngest {
  readonly id: string
  readonly name: string
  readonly detail: string
  readonly online: boolean
  readonly bitrateKbps: number
}

interface Endpoints {
  readonly name: string
  readonly scope: string
  readonly clientId: string
  readonly ingests: string
  readonly authorization: string
  readonly token: string
  readonly revocation: string | undefined
}

interface Tokens {
  readonly access: string
  readonly refresh: string
}

type Json = Readonly<Record<string, unknown>>

/** `signed_out`: the sign-in has ended. `unavailable`: briefly, and the client goes on as before. */
export class IrlSourceError extends Error {
  override name = 'IrlSourceError'
  constructor(
    readonly outcome: 'signed_out' | 'unavailable' | 'forbidden' | 'unknown' | 'refused' | 'protocol',
    message: string,
  ) {
    super(message)
  }
}

const protocolError = (message: string) => new IrlSourceError('protocol', message)

export class IrlSourceClient {
  tokens: Tokens | undefined
  #endpoints: Endpoints | undefined

  /** @param base what the user types. */
  constructor(readonly base: string) {}

  /** Both documents are read at a sign-in only, and kept. */
  async discover(): Promise<Endpoints> {
    const document = await this.#document(`${this.base.replace(/\/+$/, '')}/.well-known/irl-source-provider.json`)
    if (document.protocol_version !== 1) throw protocolError('protocol_version is not the number 1')
    if (!/^[a-z0-9-]{1,32}$/.test(String(document.id))) throw protocolError('bad id')
    const [name, issuer, ingests] = [document.name, document.issuer, document.ingests_endpoint].map(nonBlank)
    if (new URL(ingests ?? '').search !== '') throw protocolError('ingests_endpoint has a query')
    const metadata = await this.#document(`${issuer}/.well-known/openid-configuration`)
    this.#endpoints = {
      name: name as string,
      scope: nonBlank(document.scope ?? 'openid'),
      clientId: nonBlank(document.client_id),
      ingests: ingests as string,
      authorization: nonBlank(metadata.authorization_endpoint),
      token: nonBlank(metadata.token_endpoint),
      revocation: metadata.revocation_endpoint === undefined ? undefined : nonBlank(metadata.revocation_endpoint),
    }
    for (const url of [this.base, issuer, ingests, this.#endpoints.authorization, this.#endpoints.token])
      requireSecureOrLocal(String(url))
    return this.#endpoints
  }

  /**
   * @param openBrowser opens the address in the browser of the user.
   * @param signal ends the wait for it.
   */
  async signIn(
    openBrowser: (url: string) => Promise<unknown>,
    signal = AbortSignal.timeout(signInMillisMax),
  ): Promise<void> {
    const { authorization, clientId, scope } = await this.discover()
    const { server, redirectUri } = await listenForCallback()
    const [state, verifier] = [randomBytes(16).toString('hex'), randomBytes(32).toString('base64url')]
    const url = new URL(authorization)
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      scope,
      state,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    }).toString()
    try {
      const arriving = nextCallback(server, signal)
      const [target] = await Promise.all([arriving, openBrowser(url.href)])
      if (target.includes('+') || target.length > 8192) throw protocolError('the callback cannot be read')
      const answer = new URL(target, redirectUri).searchParams
      if (answer.get('state') !== state) throw protocolError('the callback has another state')
      if (answer.has('error')) throw new IrlSourceError('refused', String(answer.get('error')))
      await this.#exchange({
        grant_type: 'authorization_code',
        code: answer.get('code') ?? '',
        redirect_uri: redirectUri,
        code_verifier: verifier,
      })
    } finally {
      server.close()
      server.closeAllConnections()
    }
  }

  async refresh(refreshToken = this.tokens?.refresh ?? ''): Promise<void> {
    await this.#exchange({ grant_type: 'refresh_token', refresh_token: refreshToken })
  }

  async list(): Promise<IrlIngest[]> {
    const { ingests } = this.#known()
    const body = await this.#read(ingests)
    if (!Array.isArray(body.ingests)) throw protocolError('no list')
    return (body.ingests as Json[]).flatMap((entry) => {
      if (typeof entry.id !== 'string' || typeof entry.name !== 'string')
        throw protocolError('an entry without id or name')
      const { id, name, detail = '', online = false, bitrate_kbps: bitrateKbps = 0 } = entry
      if (typeof detail !== 'string' || typeof online !== 'boolean') throw protocolError('an entry of a wrong type')
      if (!Number.isInteger(bitrateKbps) || Number(bitrateKbps) < 0) throw protocolError('a bitrate that is not whole')
      const isValid = /^[A-Za-z0-9._:-]{1,128}$/.test(id) && name.trim() !== ''
      return isValid ? [{ id, name, detail, online, bitrateKbps: Number(bitrateKbps) }] : []
    })
  }

  /** The address to play. The client stores it and never asks again. */
  async resolve(id: string): Promise<string> {
    return nonBlank((await this.#read(`${this.#known().ingests}/${id}/url`)).url)
  }

  /** The result is ignored. */
  async signOut(): Promise<void> {
    const { revocation, clientId } = this.#known()
    const body = { token: this.tokens?.refresh ?? '', token_type_hint: 'refresh_token', client_id: clientId }
    if (revocation) await send(revocation, { method: 'POST', body: new URLSearchParams(body) }).catch(() => undefined)
    this.tokens = undefined
  }

  #known(): Endpoints {
    if (!this.#endpoints) throw new Error('the client has not signed in')
    return this.#endpoints
  }

  async #document(url: string): Promise<Json> {
    const response = await send(url)
    const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false
    if (response.status !== 200 || !isJson) throw protocolError(`${url} answered ${response.status}`)
    return (await response.json()) as Json
  }

  async #exchange(fields: Readonly<Record<string, string>>): Promise<void> {
    const { token, clientId } = this.#known()
    const response = await send(token, {
      method: 'POST',
      body: new URLSearchParams({ ...fields, client_id: clientId }),
    })
    const body = (await response.json().catch(() => ({}))) as Json
    if (response.status === 200) {
      this.tokens = { access: nonBlank(body.access_token), refresh: nonBlank(body.refresh_token) }
      return
    }
    if (body.error !== 'invalid_grant') throw new IrlSourceError('unavailable', `${response.status} ${body.error}`)
    this.tokens = undefined
    throw new IrlSourceError('signed_out', String(body.error_description))
  }

  /** One refresh and one repetition after a 401; a second 401 ends the sign-in. */
  async #read(url: string, isRepeated = false): Promise<Json> {
    if (!this.tokens) throw new IrlSourceError('signed_out', 'not signed in')
    const response = await send(url, { headers: { authorization: `Bearer ${this.tokens.access}` } })
    if (response.status === 200) return (await response.json()) as Json
    if (response.status === 401 && !isRepeated) {
      await this.refresh()
      return this.#read(url, true)
    }
    const { error_description: text = '' } = (await response.json().catch(() => ({}))) as Json
    if (response.status === 401) this.tokens = undefined
    const outcome = ({ 401: 'signed_out', 403: 'forbidden', 404: 'unknown' } as const)[response.status]
    throw new IrlSourceError(outcome ?? 'unavailable', `${response.status} ${text}`)
  }
}

async function send(url: string, init: RequestInit = {}): Promise<Response> {
  const headers = { 'user-agent': userAgent, ...init.headers }
  try {
    return await fetch(url, { ...init, headers, redirect: 'error', signal: AbortSignal.timeout(requestMillisMax) })
  } catch (cause) {
    throw new IrlSourceError('unavailable', `${url}: ${cause}`)
  }
}

function nonBlank(value: unknown): string {
  if (typeof value !== 'string' || value.trim() === '') throw protocolError(`a text is missing: ${String(value)}`)
  return value
}

function requireSecureOrLocal(url: string): void {
  const { protocol, hostname } = new URL(url)
  if (protocol !== 'https:' && !['127.0.0.1', 'localhost', '[::1]'].includes(hostname))
    throw protocolError(`${url} is neither secure nor local`)
}

/** Listens on the first of the ports that is free. */
async function listenForCallback(): Promise<{ server: Server; redirectUri: string }> {
  for (const port of ports) {
    const server = createServer()
    const isListening = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
    })
    if (isListening) return { server, redirectUri: `http://127.0.0.1:${port}/callback` }
  }
  throw new Error(`none of the ports from ${ports[0]} on is free`)
}

/** The target of the next request for the callback. */
async function nextCallback(server: Server, signal: AbortSignal): Promise<string> {
  for (;;) {
    const [request, response] = await once(server, 'request', { signal })
    response
      .writeHead(200, { 'content-type': 'text/html' })
      .end('<!doctype html><title>Back</title>You can close this page.')
    if (request.url.startsWith('/callback?')) return request.url
  }
}
