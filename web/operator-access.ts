/**
 * Access to the operator console. The site exchanges the operator password for the token of an operator session and
 * keeps it in a cookie of its own, which browsers send to the console's paths only. The password is stored nowhere.
 */
import type { Context } from 'koa'
import type { SiteConfig } from '../platform/config/site.ts'
import type { Api } from './api.ts'
import { localPath } from './local-path.ts'
import {
  endedOperatorCookie,
  NotFoundForOperatorError,
  OperatorSessionEndedError,
  readOperatorToken,
} from './operator-session.ts'
import type { Document, PageResult, PageRoute } from './page.ts'
import { consoleProblemPage, type ProblemKind, problemPage } from './pages/problem.tsx'
import { isCrossSiteNavigation } from './same-origin.ts'
import { createVisit } from './visit.ts'

export const consolePath = '/operator'
export const operatorSignInPath = '/operator/sign-in'

export const isConsolePath = (path: string): boolean => path === consolePath || path.startsWith(`${consolePath}/`)

/**
 * An error page, for an operator in the frame of the console. Browsers send the operator's cookie to its paths only.
 */
export const problemPageFor = (ctx: Context, kind: ProblemKind): Document =>
  isConsolePath(ctx.path) && readOperatorToken(ctx) !== undefined ? consoleProblemPage(kind) : problemPage(kind)

/** The page of the console to open after a sign-in. */
export function consoleTarget(requested: string | null | undefined): string {
  const path = localPath(requested, consolePath)
  return isConsolePath(path.split('?')[0] ?? '') ? path : consolePath
}

interface Site {
  readonly api: Api
  readonly config: SiteConfig
}

/** Runs a page of the console for a signed-in operator. Any other visitor is sent to the console's sign-in page. */
export async function openOperatorPage(ctx: Context, page: PageRoute, site: Site): Promise<PageResult> {
  if (readOperatorToken(ctx) === undefined) {
    // A cross-site navigation sends no Strict cookies. Forwarding to the same page makes the next request send them.
    if (isCrossSiteNavigation(ctx)) return { continueTo: consoleTarget(ctx.url), message: 'Loading…' }
    return { redirectTo: signInPathFor(page, ctx) }
  }
  try {
    return await page.handle(await createVisit(ctx, site, page))
  } catch (error) {
    if (error instanceof OperatorSessionEndedError)
      return { redirectTo: signInPathFor(page, ctx), cookies: [endedOperatorCookie] }
    if (error instanceof NotFoundForOperatorError) return problemPageFor(ctx, 'not_found')
    throw error
  }
}

const signInPathFor = (page: PageRoute, ctx: Context): string =>
  `${operatorSignInPath}?next=${encodeURIComponent(page.method === 'GET' ? ctx.url : (page.returnTo ?? consolePath))}`
