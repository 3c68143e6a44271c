/** Signing out: at the api, and in this browser whatever the api says. */
import { ApiUnavailableError } from '../api.ts'
import { signOutCookies } from '../cookies.ts'
import { localPath } from '../local-path.ts'
import type { PageRoute } from '../page.ts'

export const submit: PageRoute = {
  method: 'POST',
  path: '/sign-out',
  caller: 'anyone',
  // An access token that is over is renewed only after the api was asked, so that an api that is away keeps nobody in.
  allowsCrossSiteEntry: true,
  handle: async ({ form, isSignedIn, callApi }) => {
    const next = localPath(form.get('next'), '/login')
    if (isSignedIn) await callApi('POST', '/api/v1/auth/logout').catch(unlessAway)
    return { redirectTo: next, cookies: signOutCookies }
  },
}

function unlessAway(error: unknown): void {
  if (!(error instanceof ApiUnavailableError)) throw error
}
