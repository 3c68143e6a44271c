/** `npm run site`: the process of the dashboard. It is stateless and calls the API over HTTP only. */
import { readSiteConfig } from '../platform/config/site.ts'
import { runProgram } from '../platform/program.ts'
import { startSite } from './start-site.ts'

await runProgram('site', readSiteConfig, async (deps) => {
  const { port } = await startSite(deps)
  deps.log.info({ port }, 'site listening')
})
