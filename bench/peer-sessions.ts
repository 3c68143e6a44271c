/** Sign-in sessions, against better-auth: the check of a session, and its refresh. */
import { randomBytes } from 'node:crypto'
import { Agent } from 'node:http'
import { createSecretToken, hashSecretToken } from '../api/identity/secret-tokens.ts'
import type { Database } from '../db/connection.ts'
import { insertRefreshToken } from '../db/identity/refresh-tokens.ts'
import { runCallers } from './callers.ts'
import type { BenchData, BenchUser } from './data.ts'
import { call, throughput } from './load.ts'
import { measurePairs } from './pairs.ts'
import { peerFigures } from './peer-figures.ts'
import { type PeerBench, peerVariables } from './peer-servers.ts'
import { compare, type Figure, type Row } from './rows.ts'
import { type RunningProgram, waitUntilAnswering } from './stack.ts'

const connections = 32
const seconds = 3
const refreshesPerRound = 1000
const path = '/api/auth/get-session'

/** A server of better-auth with as many users and sessions as the service has, and the cookies of the sessions. */
async function startBetterAuth(
  bench: PeerBench,
  database: string,
  variables: Readonly<Record<'PEER_COOKIE_CACHE' | 'PEER_REFRESH', string>>,
): Promise<RunningProgram & { readonly cookies: readonly string[] }> {
  const { stack, data } = bench
  await stack.sql`create database ${stack.sql(database)}`
  const server = await stack.start('bench/peers/better-auth.ts', {
    ...peerVariables(stack, database),
    ...variables,
    PEER_USERS: String(data.users.length),
    PEER_SECRET: randomBytes(32).toString('base64'),
  })
  await waitUntilAnswering(server, '/sessions')
  const answer = await call({ method: 'GET', url: `${server.url}/sessions`, headers: {} })
  return { ...server, cookies: JSON.parse(answer) as string[] }
}

export async function measureSessionCheck(bench: PeerBench): Promise<Row[]> {
  const plain = await startBetterAuth(bench, 'better_auth', { PEER_COOKIE_CACHE: 'false', PEER_REFRESH: 'daily' })
  const withoutCache = await compareChecks(bench, plain, peerFigures.session_check)
  await plain.stop()
  const cached = await startBetterAuth(bench, 'better_auth_cached', {
    PEER_COOKIE_CACHE: 'true',
    PEER_REFRESH: 'daily',
  })
  const cookies = await Promise.all(
    cached.cookies.slice(0, connections).map((cookie) => addCookieCache(cached, cookie)),
  )
  const withCache = await compareChecks(bench, { ...cached, cookies }, peerFigures.session_check_cached)
  await cached.stop()
  return [withoutCache, withCache]
}

/** The cookies of a session whose cache cookie was set by a first check. */
async function addCookieCache({ url }: RunningProgram, cookie: string): Promise<string> {
  const answer = await fetch(url + path, { headers: { cookie } })
  const added = answer.headers.getSetCookie().map((line) => line.slice(0, line.indexOf(';')))
  await answer.text()
  if (added.length === 0) throw new Error('better-auth set no cookie cache')
  return [cookie, ...added].join('; ')
}

async function compareChecks(
  { api, data, rounds }: PeerBench,
  peer: RunningProgram & { readonly cookies: readonly string[] },
  figure: Figure,
): Promise<Row> {
  const load = { connections, seconds }
  const pairs = await measurePairs({
    what: figure.what,
    rounds,
    floor: () =>
      throughput({
        ...load,
        url: peer.url,
        pid: peer.pid,
        requestsOf: (connection) => [{ method: 'GET', path, headers: { cookie: peer.cookies[connection] ?? '' } }],
      }),
    ours: () =>
      throughput({
        ...load,
        url: api.url,
        pid: api.pid,
        requestsOf: (connection) => [
          {
            method: 'GET',
            path: '/api/v1/auth/session',
            headers: { authorization: data.users[connection]?.bearer ?? '' },
          },
        ],
      }),
  })
  return compare(figure, pairs, 'per second')
}

export async function measureRefresh(bench: PeerBench): Promise<Row[]> {
  const { api, stack, data, rounds } = bench
  const peer = await startBetterAuth(bench, 'better_auth_refresh', {
    PEER_COOKIE_CACHE: 'false',
    PEER_REFRESH: 'always',
  })
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const chains = await createRefreshChains(stack.sql, data)
  const pairs = await measurePairs({
    what: 'refresh',
    rounds,
    floor: () =>
      runCallers(repeat(peer.cookies, refreshesPerRound), connections, (cookie) =>
        call({ method: 'GET', url: peer.url + path, headers: { cookie } }, agent),
      ),
    ours: () => runCallers(repeat(chains, refreshesPerRound), connections, (chain) => chain.refresh(api, agent)),
  })
  agent.destroy()
  await peer.stop()
  return [
    compare(peerFigures.refresh_throughput, pairs, 'per second'),
    compare(peerFigures.refresh_p50, pairs, 'p50 ms'),
  ]
}

/** More items than callers, so that no two callers have the same one at a time. */
function* repeat<Item>(items: readonly Item[], count: number): Generator<Item> {
  for (let index = 0; index < count; index += 1) {
    const item = items[index % items.length]
    if (item !== undefined) yield item
  }
}

/** One auth session, whose token each refresh replaces. */
export class RefreshChain {
  #token: string

  constructor(token: string) {
    this.#token = token
  }

  /** Returns the new access token. */
  async refresh({ url }: RunningProgram, agent: Agent): Promise<string> {
    const body = JSON.stringify({ refresh_token: this.#token })
    const answer = await call({ method: 'POST', url: `${url}/api/v1/auth/refresh`, headers: {}, body }, agent)
    const tokens = JSON.parse(answer) as { cp_access_jwt: string; refresh_token: string }
    this.#token = tokens.refresh_token
    return tokens.cp_access_jwt
  }
}

const createRefreshChains = (sql: Database, { users }: BenchData): Promise<RefreshChain[]> =>
  Promise.all(users.map(({ authSessionId }: BenchUser) => createRefreshChain(sql, authSessionId)))

export async function createRefreshChain(sql: Database, authSessionId: string): Promise<RefreshChain> {
  const token = createSecretToken()
  await insertRefreshToken(sql, hashSecretToken(token), authSessionId)
  return new RefreshChain(token)
}
