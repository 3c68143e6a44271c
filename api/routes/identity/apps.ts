/** Apps that an account has connected, and the requests of apps that its user decides about. */
import { z } from 'zod'
import { appScopes, nameOfApp } from '../../../domain/identity/apps.ts'
import { decideOnAppRequest, showAppRequest } from '../../apps/app-requests.ts'
import { disconnectApp, listConnectedApps } from '../../apps/connected-apps.ts'
import { noContent, ok } from '../../http/replies.ts'
import { timestamp } from '../../http/schemas.ts'
import { route } from '../route.ts'

const Scopes = z.array(z.enum(appScopes)).describe('What the app may do.')

const AppView = z
  .object({
    client_id: z.string(),
    name: z.string(),
    scopes: Scopes,
    sign_ins: z
      .int()
      .describe('How many computers the app is signed in on; 0 when only the address that it got still plays.'),
    connected_at: timestamp,
    last_used_at: timestamp,
  })
  .meta({ id: 'ConnectedApp' })

export const list = route.user({
  id: 'listConnectedApps',
  summary: 'List connected apps',
  description: 'The apps that act for the account, in the order in which they were connected.',
  answers: { 200: z.object({ apps: z.array(AppView) }) },
  refuses: [],
  handle: async ({ caller }, { sql }) => {
    const connected = await listConnectedApps(sql, caller.userId)
    return ok({
      apps: connected.map((app) => ({
        client_id: app.clientId,
        name: app.name,
        scopes: app.scopes,
        sign_ins: app.signIns,
        connected_at: app.connectedAt.toISOString(),
        last_used_at: app.lastUsedAt.toISOString(),
      })),
    })
  },
})

export const disconnect = route.user({
  id: 'disconnectApp',
  summary: 'Disconnect an app',
  description:
    'Ends all sign-ins of the app at once, with their tokens, and deletes its play key: addresses that it got play no more.',
  params: z.object({ client_id: z.string().min(1).max(64).describe('The id of the app.') }),
  answers: { 204: null },
  refuses: ['not_found'],
  handle: async ({ caller, params, ip }, { sql }) => {
    await disconnectApp(sql, caller, params.client_id, ip)
    return noContent()
  },
})

const RequestParams = z.object({
  id: z
    .string()
    .regex(/^[\w-]{16,64}$/)
    .describe('The id of the request, from the address of its page.'),
})

const RequestView = z.object({
  client_id: z.string(),
  name: z.string(),
  scopes: Scopes,
  status: z.enum(['pending', 'approved', 'denied']),
  created_at: timestamp,
  expires_at: timestamp,
})

export const showRequest = route.user({
  id: 'getAppRequest',
  summary: 'Show the request of an app',
  description:
    'What an app asks for whose authorization request has arrived in the browser of the user. Another account cannot see it once it is decided.',
  params: RequestParams,
  answers: { 200: RequestView },
  refuses: ['not_found'],
  handle: async ({ caller, params }, { sql }) => {
    const request = await showAppRequest(sql, params.id, caller.userId)
    return ok({
      client_id: request.clientId,
      name: nameOfApp(request.clientId),
      scopes: request.scopes,
      status: request.decision ?? 'pending',
      created_at: request.createdAt.toISOString(),
      expires_at: request.expiresAt.toISOString(),
    })
  },
})

const Continuation = z.object({
  continue_url: z
    .string()
    .describe('Where the browser goes next. It leads to the app only in the browser that the request began in.'),
})

export const approve = route.user({
  id: 'approveAppRequest',
  summary: 'Approve the request of an app',
  description:
    'Binds the request to the account. The app gets its tokens when the browser has come back. Safe to repeat.',
  params: RequestParams,
  answers: { 200: Continuation },
  refuses: ['not_found'],
  secret: true,
  handle: async ({ caller, params }, services) =>
    ok({ continue_url: await decideOnAppRequest(services, params.id, caller, 'approved') }),
})

export const deny = route.user({
  id: 'denyAppRequest',
  summary: 'Deny the request of an app',
  description: 'The app learns of it when the browser has come back. Safe to repeat.',
  params: RequestParams,
  answers: { 200: Continuation },
  refuses: ['not_found'],
  secret: true,
  handle: async ({ caller, params }, services) =>
    ok({ continue_url: await decideOnAppRequest(services, params.id, caller, 'denied') }),
})
