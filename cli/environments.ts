/** What each program of the service is told: our own environment, and over it what is known only once the servers run. */
import type { StackConfig } from '../platform/config/stack.ts'
import type { ServicePorts } from './service-ports.ts'

export type Variables = Record<string, string>

/** The secrets that nobody gave. */
export const missingSecrets = (
  { secrets }: StackConfig,
  made: Readonly<Record<string, unknown>> | undefined,
): Variables =>
  Object.fromEntries(
    Object.entries(secrets).flatMap(([name, given]) =>
      given === undefined && made ? [[name, String(made[name])]] : [],
    ),
  )

/** On this machine everybody may buy for nothing, as long as nobody said who takes the money. */
export const billingUnlessSaid = ({ environment }: StackConfig): Variables =>
  environment.SVC_BILLING_PROVIDER || environment.SVC_BILLING_PROVIDER_FILE ? {} : { SVC_BILLING_PROVIDER: 'sandbox' }

export const portsOf = ({ port, sitePort }: StackConfig, chosen: ServicePorts): Variables => ({
  ...(port === undefined ? { PORT: String(chosen.api) } : {}),
  ...(sitePort === undefined ? { SVC_SITE_PORT: String(chosen.site) } : {}),
})

/** Our own environment with `resolved` over it; a variable that came from a file is not in it. */
export function environmentOf({ environment }: StackConfig, resolved: Variables): Variables {
  const env: Variables = {}
  for (const [name, value] of Object.entries(environment)) if (value !== undefined) env[name] = value
  return resolve(env, resolved)
}

/**
 * The site's part of it, which holds no secret: it can do nothing that a browser can't. `SVC_API_URL` is another thing for
 * each program: the api's public address, where relays report to, and for the site the shortest way to the api.
 */
export function siteEnvironmentOf(env: Variables, apiUrl: string): Variables {
  const own = Object.entries(env).filter(([name]) => siteVariables.has(name.replace(/_FILE$/, '')))
  return resolve(Object.fromEntries(own), { SVC_API_URL: apiUrl })
}

const siteVariables = new Set([
  'LOG_LEVEL',
  'SVC_SITE_PORT',
  'SVC_SITE_URL',
  'SVC_TRUSTED_PROXY_HOPS',
  'SVC_DRAIN_SECONDS',
  // Not read by it: tells whose process it is.
  'SVC_DATA_DIR',
  // What Node and the loader read.
  'PATH',
  'HOME',
  'TMPDIR',
  'NODE_ENV',
  'NODE_OPTIONS',
])

function resolve(env: Variables, resolved: Variables): Variables {
  const files = new Set(Object.keys(resolved).map((name) => `${name}_FILE`))
  return { ...Object.fromEntries(Object.entries(env).filter(([name]) => !files.has(name))), ...resolved }
}
