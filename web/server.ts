/** `npm run site`: the dashboard's process. It keeps nothing and talks to the api over REST only. */
import { ConfigError, readSiteConfig } from '../platform/config.ts'
import { Lifecycle } from '../platform/lifecycle.ts'
import { createLog } from '../platform/log.ts'
import { startSite } from './start-site.ts'

try {
  const config = readSiteConfig()
  const log = createLog('site', config.logLevel)
  const life = new Lifecycle(log)
  const asked = life.untilAsked()
  const { port } = await startSite({ config, log, life })
  log.info({ port }, 'the site listens')
  log.info({ reason: await asked }, 'stopping')
  await life.stop()
  process.exit(0)
} catch (error) {
  process.stderr.write(`${error instanceof ConfigError ? error.message : String(error)}\n`)
  process.exit(1)
}
