/**
 * better-auth on Postgres, as its documentation recommends: a `pg` pool, the Node handler, joins, and the cookie cache
 * where it is measured. Creates its tables, its users and one session each, and answers `/sessions` with the cookies of
 * all.
 */
import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import { type BetterAuthOptions, betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { toNodeHandler } from 'better-auth/node'
import { Pool } from 'pg'
import { readVariable } from './variables.ts'

const users = Number(readVariable('PEER_USERS'))
const secret = readVariable('PEER_SECRET')
const port = Number(readVariable('PORT'))
const daySeconds = 24 * 3600

const options = {
  secret,
  baseURL: `http://127.0.0.1:${port}`,
  database: new Pool({
    connectionString: readVariable('PEER_DATABASE_URL'),
    max: Number(readVariable('PEER_DATABASE_POOL')),
  }),
  emailAndPassword: { enabled: true },
  session: {
    expiresIn: 30 * daySeconds,
    // 0 extends the session at every use, which is its counterpart of a refresh.
    updateAge: readVariable('PEER_REFRESH') === 'always' ? 0 : daySeconds,
    cookieCache: { enabled: readVariable('PEER_COOKIE_CACHE') === 'true', maxAge: 300 },
  },
  // Counted as in production, and never reached.
  rateLimit: { enabled: true, window: 60, max: 9_999_999 },
  advanced: { database: { joins: true } },
  telemetry: { enabled: false },
} satisfies BetterAuthOptions

const auth = betterAuth(options)
await (await getMigrations(options)).runMigrations()

async function createSessions(): Promise<string[]> {
  const { internalAdapter, authCookies } = await auth.$context
  const cookies: string[] = []
  for (let index = 0; index < users; index += 1) {
    const person = { email: `user-${index}@peer.test`, name: `User ${index}`, emailVerified: true }
    const user = await internalAdapter.createUser(person, { method: 'email-password' })
    const { token } = await internalAdapter.createSession(user.id)
    const signature = createHmac('sha256', secret).update(token).digest('base64')
    cookies.push(`${authCookies.sessionToken.name}=${encodeURIComponent(`${token}.${signature}`)}`)
  }
  return cookies
}

const cookies = await createSessions()
const handle = toNodeHandler(auth)
const server = createServer((request, response) => {
  if (request.url === '/sessions') response.end(JSON.stringify(cookies))
  else void handle(request, response)
})
server.listen(port, '127.0.0.1')
process.once('disconnect', () => process.exit(0))
process.once('SIGTERM', () => process.exit(0))
