/** Handles the requests of one route: checks and parses them, and runs the handler of the route. */
import type { RouterContext } from '@koa/router'
import type { z } from 'zod'
import { isAccountErased, isStatementOutdated } from '../../db/connection.ts'
import { clientAddress } from '../../platform/koa/client-address.ts'
import { deprecationHeaders } from './deprecation.ts'
import { Refusal } from './refusals.ts'
import type { Reply } from './replies.ts'
import { readBytes, readJson, requireJson } from './request-bodies.ts'
import type { CheckOrigin } from './request-origin.ts'
import type { Credentials, ReadHeader } from './requests.ts'
import { addHeaders, send, sendBytes, sendText } from './responses.ts'
import type { Admitted, ServedRoute } from './served-route.ts'

export type HandleRoute = (ctx: RouterContext) => Promise<void>

/** Checks a request in this order: origin, credentials, rate limit, input. Then runs the handler. */
export function createRouteHandler(route: ServedRoute, checkOrigin: CheckOrigin): HandleRoute {
  const isForgeable = route.hasAmbientCredentials && route.method !== 'GET'

  const handleAdmitted = async (ctx: RouterContext, { caller, read }: Admitted, { ip, header }: Credentials) => {
    const params = route.params ? parseInput(route.params, ctx.params, 'path') : {}
    const query = route.query ? parseInput(route.query, ctx.query, 'query') : {}
    if (isForgeable && route.method === 'POST') requireJson(ctx)
    const body = route.body ? parseInput(route.body, await readJson(ctx), 'body') : {}
    const bytes =
      route.bytesMax === undefined ? noBytes : await readBytes(ctx.req, route.bytesMax, route.rawBody?.tooLarge)
    const userAgent = (header('user-agent') ?? '').slice(0, 256)
    const { req: incoming, state } = ctx
    const { headers } = incoming
    const { requestId } = state as { requestId: string }
    const request = { caller, read, params, query, body, bytes, ip, userAgent, header, headers, incoming, requestId }
    sendReply(ctx, await route.handle(request))
  }

  const fixedHeaders = {
    ...(route.secret ? { 'Cache-Control': 'no-store' } : {}),
    ...(route.deprecated ? deprecationHeaders(route.deprecated) : {}),
  }

  const answer: HandleRoute = async (ctx) => {
    addHeaders(ctx, fixedHeaders)
    const credentials = { ip: clientAddress(ctx), header: createHeaderReader(ctx) }
    // Before the credentials: a page of another site must not use up attempts at them.
    if (isForgeable) checkOrigin(credentials.header)
    const admitted = await route.admit(credentials)
    if (admitted.headers) addHeaders(ctx, admitted.headers)
    try {
      await handleAdmitted(ctx, admitted, credentials)
    } catch (error) {
      if (error instanceof Refusal) await admitted.confirm?.()
      throw error
    }
  }
  return route.method === 'GET' ? repeatOvertaken(answer) : answer
}

/**
 * Answers again what another transaction made fail: a migration, which makes statements outdated, or the erasure of the
 * account, which is not found then. Requests that only read need not fail for it.
 */
const repeatOvertaken =
  (answer: HandleRoute): HandleRoute =>
  async (ctx) => {
    try {
      await answer(ctx)
    } catch (error) {
      if (!isStatementOutdated(error) && !isAccountErased(error)) throw error
      await answer(ctx)
    }
  }

function sendReply(ctx: RouterContext, { status, body, text, content, headers, waitedSeconds }: Reply): void {
  ctx.state.waitedSeconds = waitedSeconds
  // The connection belongs to another protocol now.
  if (status === 101) {
    ctx.respond = false
    ctx.status = status
    return
  }
  if (headers) addHeaders(ctx, headers)
  if (content) sendBytes(ctx, status, content)
  else if (text) sendText(ctx, status, text)
  else send(ctx, status, body)
}

/** An own function, because a closure with a name costs a property definition per request. */
function createHeaderReader(ctx: RouterContext): ReadHeader {
  return (name) => ctx.get(name) || undefined
}

const noBytes = Buffer.alloc(0)

/** Refuses with `not_found` for path parameters and with `invalid_request` otherwise. */
function parseInput<Value>(schema: z.ZodType<Value>, value: unknown, where: 'path' | 'query' | 'body'): Value {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  if (where === 'path') throw new Refusal('not_found')
  const [issue] = result.error.issues
  const name = issue?.path.join('.')
  throw new Refusal('invalid_request', {
    message: name ? `${where} field ${name}: ${issue?.message}` : `${where}: ${issue?.message}`,
  })
}
