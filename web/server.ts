/** `npm run site`: the process of the dashboard. It is stateless and calls the API over HTTP only. */
import { readSiteConfig } from '../platform/config/site.ts'
import { runProgram } from '../platform/program.ts'
import { keepsSecureCookies, noSecureCookies } from '../platform/secure-cookies.ts'
import { startSite } from './start-site.ts'

await runProgram('site', readSiteConfig, async (deps) => {
  const { siteUrl } = deps.config
  if (!keepsSecureCookies(siteUrl)) deps.log.warn(noSecureCookies(siteUrl))
  const { port } = await startSite(deps)
  deps.log.info({ port }, 'site listening')
})
