/** Requests for relay sessions that several commands make. */
import { expectSuccess } from '../../client/api-error.ts'
import type { ApiClient } from '../../client/client.ts'
import type { Reply } from '../../client/reply.ts'
import type { relayStates } from '../../domain/relay/session.ts'
import { readAccountId } from './accounts.ts'

export type State = (typeof relayStates)[number]
export type Session = Reply<'get', '/admin/sessions'>['sessions'][number]
type Inspected = Reply<'get', '/admin/sessions/{id}'>

export interface SessionFilter {
  readonly state?: State
  readonly region?: string
  readonly user?: string
}

/** The filters as parameters of the API. Rejects when the account does not exist. */
export async function readFilter(api: ApiClient, { state, region, user }: SessionFilter) {
  return {
    ...(state === undefined ? {} : { state }),
    ...(region === undefined ? {} : { region }),
    ...(user === undefined ? {} : { user_id: await readAccountId(api, user) }),
  }
}

export const inspectSession = async (api: ApiClient, id: string): Promise<Inspected> =>
  expectSuccess(await api.GET('/api/v1/admin/sessions/{id}', { params: { path: { id } } }), `The request for ${id}`)
