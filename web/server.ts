/** `npm run site`: the dashboard's process. It keeps nothing and talks to the api over REST only. */
import { readSiteConfig } from '../platform/config/site.ts'
import { runProgram } from '../platform/program.ts'
import { startSite } from './start-site.ts'

await runProgram('site', readSiteConfig, async (needs) => {
  const { port } = await startSite(needs)
  needs.log.info({ port }, 'the site listens')
})
