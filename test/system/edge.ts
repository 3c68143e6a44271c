/** The edge of docker-compose.yml: Caddy with deploy/caddy/Caddyfile, and a client that names its own address. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { atEnd } from '../support/at-end.ts'
import { makeFolder, removeFolder } from '../support/folders.ts'
import { findFreePort } from '../support/ports.ts'
import { eventually } from '../support/relays.ts'

export const apiHost = 'api.localhost'
export const siteHost = 'localhost'

interface Options {
  readonly httpsPort: number
  /** `host:port` of each process, separated by spaces. */
  readonly apiUpstreams: string
  readonly siteUpstreams: string
  readonly operatorNetworks: string
}

export interface EdgeReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

interface EdgeRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The address of the client, of 127.0.0.0/8. */
  readonly from?: string
}

export interface Edge {
  readonly httpPort: number
  readonly httpsPort: number
  /** The certificate authority that signed the certificates of both hosts. */
  readonly authority: string
  send(host: string, path: string, request?: EdgeRequest): Promise<EdgeReply>
}

/** Starts Caddy, and stops it after the tests of the file. Resolves when it has a certificate for both hosts. */
export async function startEdge({ httpsPort, ...options }: Options): Promise<Edge> {
  const [folder, httpPort] = [await makeFolder('edge-'), await findFreePort()]
  const config = fileURLToPath(new URL('../../deploy/caddy/Caddyfile', import.meta.url))
  const caddy = spawn('caddy', ['run', '--config', config, '--adapter', 'caddyfile'], {
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      XDG_DATA_HOME: folder,
      XDG_CONFIG_HOME: folder,
      CADDY_ADMIN: `unix/${join(folder, 'admin.sock')}`,
      SVC_EDGE_HTTP_PORT: String(httpPort),
      SVC_EDGE_HTTPS_PORT: String(httpsPort),
      SVC_API_HOST: apiHost,
      SVC_SITE_HOST: siteHost,
      SVC_OPERATOR_NETWORKS: options.operatorNetworks,
      SVC_EDGE_API_UPSTREAMS: options.apiUpstreams,
      SVC_EDGE_SITE_UPSTREAMS: options.siteUpstreams,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let output = ''
  caddy.stderr.on('data', (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-20_000)
  })
  const exited = once(caddy, 'exit')
  atEnd(async () => {
    caddy.kill('SIGTERM')
    await exited
    await removeFolder(folder)
  })
  const authority = await eventually(
    async () => {
      if (caddy.exitCode !== null) throw new Error(`caddy has exited: ${output}`)
      return readFile(join(folder, 'caddy/pki/authorities/local/root.crt'), 'utf8').catch(() => '')
    },
    (text) => text !== '',
  )
  for (const host of [apiHost, siteHost]) await eventually(() => hasCertificate(host, httpsPort, authority), Boolean)
  return {
    httpPort,
    httpsPort,
    authority,
    send: (host, path, edgeRequest = {}) => send({ host, port: httpsPort, authority, path }, edgeRequest),
  }
}

const hasCertificate = (host: string, port: number, ca: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, servername: host, ca })
    socket.once('secureConnect', () => socket.destroy() && resolve(true))
    socket.once('error', () => resolve(false))
  })

interface Place {
  readonly host: string
  readonly port: number
  readonly authority: string
  readonly path: string
}

function send({ host, port, authority, path }: Place, edgeRequest: EdgeRequest): Promise<EdgeReply> {
  const { method = 'GET', headers = {}, body, from = '127.0.0.1' } = edgeRequest
  return new Promise((resolve, reject) => {
    const sending = request({
      host: '127.0.0.1',
      servername: host,
      port,
      path,
      method,
      ca: authority,
      localAddress: from,
      agent: false,
      headers: { Host: `${host}:${port}`, ...headers },
    })
    sending.on('error', reject)
    sending.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString('utf8'),
        }),
      )
    })
    sending.end(body)
  })
}
