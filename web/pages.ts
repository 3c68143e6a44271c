/** All pages of the site. */
import type { PageRoute } from './page-route.ts'
import * as login from './pages/login.tsx'

export const pages: readonly PageRoute[] = [login.show, login.submit]
