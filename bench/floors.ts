/**
 * The floors: minimal servers for the same kinds of requests. Each is a Koa application with a single handler, without
 * routes, authentication, rate limits, metrics, logs and security headers.
 */
import { createServer } from 'node:http'
import Koa, { type Context } from 'koa'
import { koaBody } from 'koa-body'
import { connectPostgres } from '../db/connection.ts'
import { readConfig } from '../platform/config/config.ts'
import { startOnFloor } from './start-floor.ts'

const config = readConfig()
const sql = connectPostgres(config.database.url, config.database.connectionsMax)

/** The parsed body, not validated. */
const bodyOf = (ctx: Context) =>
  ctx.request.body as unknown as { session_id: string; connection_id: string; region: string }

/** The user id from a header: floors do not authenticate. */
const userOf = (ctx: Context) => ctx.get('x-user')

const bare = (answer: (ctx: Context) => Promise<void> | void, body = false) => {
  const app = new Koa()
  if (body) app.use(koaBody({ text: false, urlencoded: false, multipart: false }))
  app.use(answer)
  return app.callback()
}

const floors = new Map([
  [
    '/bare',
    bare((ctx) => {
      ctx.body = { ok: true }
    }),
  ],
  [
    '/select',
    bare(async (ctx) => {
      ctx.body = await sql`
        select id, connection_id, state, region, created_at from relay_sessions
        where user_id = ${userOf(ctx)} and state <> 'stopped'`
    }),
  ],
  [
    '/json',
    bare((ctx) => {
      ctx.body = { state: 'active', desired: 'run', report_in_seconds: bodyOf(ctx).session_id ? 10 : 0 }
    }, true),
  ],
  [
    '/start',
    bare(async (ctx) => {
      const { connection_id: connectionId, region } = bodyOf(ctx)
      ctx.status = 201
      ctx.body = await startOnFloor(sql, {
        userId: userOf(ctx),
        authSessionId: ctx.get('x-auth-session'),
        idempotencyKey: ctx.get('idempotency-key'),
        connectionId,
        region,
        capacity: 50,
        relaysMax: 4,
        requestsMax: config.rateLimits.relay_start,
      })
    }, true),
  ],
])

const server = createServer((request, response) => {
  const answer = floors.get(request.url ?? '')
  if (answer) answer(request, response)
  else response.writeHead(404).end()
})
server.listen(config.port, '127.0.0.1')
process.once('disconnect', () => process.exit(0))
