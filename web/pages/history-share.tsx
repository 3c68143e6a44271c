/** The link that shares a session: making it, which shows its address once, and ending it. */
import type { PageHandler } from '../page.ts'
import { sessionPage } from './history-session.tsx'
import { problemPage } from './problem.tsx'
import { problemOf } from './refusal-text.ts'

export const share: PageHandler = async (visit) => {
  const path = { id: visit.params.session_id ?? '' }
  const result = await visit.api.POST('/api/v1/relay/sessions/{id}/share', { params: { path } })
  if (result.response.status === 404) return problemPage('not_found')
  if (result.data) return sessionPage(visit, { sharedUrl: result.data.url })
  return sessionPage(visit, { problem: problemOf(result), status: result.response.status })
}

export const revoke: PageHandler = async (visit) => {
  const path = { id: visit.params.session_id ?? '' }
  const result = await visit.api.DELETE('/api/v1/relay/sessions/{id}/share', { params: { path } })
  if (result.response.status === 404) return problemPage('not_found')
  if (result.response.ok) return { redirectTo: `/history/${path.id}?done=share_revoked#share` }
  return sessionPage(visit, { problem: problemOf(result), status: result.response.status })
}
