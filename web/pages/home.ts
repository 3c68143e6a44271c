/** `/` redirects to the relays, or to the login page. */
import type { PageRoute } from '../page.ts'

export const show: PageRoute = {
  method: 'GET',
  path: '/',
  caller: 'anyone',
  handle: ({ isSignedIn }) => ({ redirectTo: isSignedIn ? '/relays' : '/login' }),
}
