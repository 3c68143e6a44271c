/** Signing out at the API and in this browser. */
import { isApiFailure } from '../../client/api-error.ts'
import { signOutCookies } from '../cookies.ts'
import { localPath } from '../local-path.ts'
import type { PageHandler } from '../page.ts'

export const submit: PageHandler = async ({ form, isSignedIn, api }) => {
  const next = localPath(form.get('next'), '/login')
  if (isSignedIn) await api.POST('/api/v1/auth/logout').catch(ignoreUnavailableApi)
  return { redirectTo: next, cookies: signOutCookies }
}

function ignoreUnavailableApi(error: unknown): void {
  if (!isApiFailure(error)) throw error
}
