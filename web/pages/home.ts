/** The site's front door. */
import type { PageRoute } from '../page-route.ts'

export const show: PageRoute = {
  method: 'GET',
  path: '/',
  caller: 'anyone',
  handle: ({ isSignedIn }) => ({ goTo: isSignedIn ? '/relays' : '/login' }),
}
