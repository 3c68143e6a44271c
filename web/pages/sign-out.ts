/** Signing out: at the api, and in this browser whatever the api says. */
import { ApiAway } from '../api.ts'
import { signedOut } from '../cookies.ts'
import { localPath } from '../local-path.ts'
import type { PageRoute } from '../page-route.ts'

export const submit: PageRoute = {
  method: 'POST',
  path: '/sign-out',
  caller: 'anyone',
  // An access token that is over is renewed only after the api was asked, so that an api that is away keeps nobody in.
  arrival: true,
  handle: async ({ form, isSignedIn, ask }) => {
    const next = localPath(form.get('next'), '/login')
    if (isSignedIn) await ask('POST', '/api/v1/auth/logout').catch(unlessAway)
    return { goTo: next, cookies: signedOut }
  },
}

function unlessAway(error: unknown): void {
  if (!(error instanceof ApiAway)) throw error
}
