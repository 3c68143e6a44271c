/** The configuration of the site, which stores no data and holds no secret. */
import { deepFreeze, type Environment, readVariables } from './environment.ts'
import { url } from './values.ts'
import { Variables } from './variables.ts'

const SiteVariables = Variables.pick({
  LOG_LEVEL: true,
  SVC_SITE_PORT: true,
  SVC_SITE_URL: true,
  SVC_DRAIN_SECONDS: true,
  SVC_TRUSTED_PROXY_HOPS: true,
}).extend({ SVC_API_URL: url.default('http://localhost:8080') })

/** Reads and checks the variables of the site. Throws `ConfigError`. */
export function readSiteConfig(env: Environment = process.env) {
  const v = readVariables(SiteVariables, env)
  return deepFreeze({
    logLevel: v.LOG_LEVEL,
    port: v.SVC_SITE_PORT,
    /** The URL of the site for browsers. */
    siteUrl: v.SVC_SITE_URL ?? `http://localhost:${v.SVC_SITE_PORT}`,
    /** The URL of the api for the site. */
    apiUrl: v.SVC_API_URL,
    drainSeconds: v.SVC_DRAIN_SECONDS,
    trustedProxyHops: v.SVC_TRUSTED_PROXY_HOPS,
  })
}

export type SiteConfig = ReturnType<typeof readSiteConfig>
