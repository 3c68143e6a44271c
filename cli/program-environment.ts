/**
 * The environment of the service's programs: that of this process, and the values that are known once the servers run.
 */
import { ConfigError, type Environment } from '../platform/config/environment.ts'
import { isLoopback } from '../platform/config/mail-values.ts'
import type { StackConfig } from '../platform/config/stack.ts'
import type { ServicePorts } from './service-ports.ts'

export type Variables = Record<string, string>

/** Whether a variable has a value, by itself or in a file. */
export const isSet = (env: Environment, name: string): boolean => Boolean(env[name] || env[`${name}_FILE`])

/** Without the variables that have no value. */
export const definedVariables = (env: Environment): Variables =>
  Object.fromEntries(Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))

/** What a reader returns; undefined when the configuration is wrong, whose problems are added then. */
export function readCollecting<Value>(problems: Set<string>, reader: () => Value): Value | undefined {
  try {
    return reader()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const problem of error.problems) problems.add(problem)
    return undefined
  }
}

/** The generated value of each secret that no variable sets. */
export const generatedSecrets = (
  { secrets }: StackConfig,
  generated: Readonly<Record<string, unknown>> | undefined,
): Variables =>
  Object.fromEntries(
    Object.entries(secrets).flatMap(([name, value]) =>
      value === undefined && generated ? [[name, String(generated[name])]] : [],
    ),
  )

/** The sandbox, where purchases cost nothing, with an example of a price, unless a billing provider is configured. */
export const defaultBillingProvider = ({ environment }: StackConfig): Variables =>
  isSet(environment, 'SVC_BILLING_PROVIDER')
    ? {}
    : { SVC_BILLING_PROVIDER: 'sandbox', SVC_PLAN_PRICE: environment.SVC_PLAN_PRICE || '14.99' }

/** A trial of an hour, for a first stream without a purchase, unless another length is configured. */
export const defaultTrial = ({ environment }: StackConfig): Variables =>
  environment.SVC_TRIAL_SECONDS ? {} : { SVC_TRIAL_SECONDS: '3600' }

/**
 * A mailbox instead of a mail server, unless one is configured or the site is for others than the users of this
 * machine.
 */
export const mailboxVariable = ({ environment, siteUrl }: StackConfig): Variables =>
  isSet(environment, 'SVC_SMTP_URL') || environment.SVC_MAILBOX || !isLocalSite(siteUrl) ? {} : { SVC_MAILBOX: 'true' }

const isLocalSite = (siteUrl: string | undefined): boolean =>
  siteUrl === undefined || isLoopback(new URL(siteUrl).hostname)

/** The chosen ports, as far as no variable sets them. */
export const portVariables = ({ port, sitePort }: StackConfig, chosen: ServicePorts): Variables => ({
  ...(port === undefined ? { PORT: String(chosen.api) } : {}),
  ...(sitePort === undefined ? { SVC_SITE_PORT: String(chosen.site) } : {}),
})

/** The environment of this process with other values for some variables, also where a `NAME_FILE` set them. */
export const environmentWith = ({ environment }: StackConfig, overrides: Variables): Variables =>
  override(definedVariables(environment), overrides)

/**
 * The environment of the site, which contains no secret. `SVC_API_URL` has another meaning there: the address at which
 * the site reaches the api, instead of the public address.
 */
export function siteEnvironment(env: Environment, apiUrl: string): Variables {
  const allowed = Object.entries(definedVariables(env)).filter(([name]) =>
    siteVariables.has(name.replace(/_FILE$/, '')),
  )
  return override(Object.fromEntries(allowed), { SVC_API_URL: apiUrl })
}

const siteVariables = new Set([
  'LOG_LEVEL',
  'SVC_SITE_PORT',
  'SVC_SITE_URL',
  'SVC_TRUSTED_PROXY_HOPS',
  'SVC_DRAIN_SECONDS',
  'SVC_BRAND_NAME',
  'SVC_SUPPORT_EMAIL',
  'SVC_TERMS_URL',
  'SVC_TERMS_VERSION',
  'SVC_PRIVACY_URL',
  'SVC_IMPRINT_URL',
  'SVC_REFUND_URL',
  'SVC_ABUSE_CONTACT',
  'SVC_PLAN_PRICE',
  'SVC_ADDON_PRICE',
  'SVC_CURRENCY',
  'SVC_TIME_BANK_HOURS_PER_RELAY',
  'SVC_TIME_BANK_ENFORCEMENT',
  'SVC_MAILBOX',
  // The site does not read it. It shows in the process table which stack the process belongs to.
  'SVC_DATA_DIR',
  // Read by Node and the loader.
  'PATH',
  'HOME',
  'TMPDIR',
  'NODE_ENV',
  'NODE_OPTIONS',
])

function override(env: Variables, overrides: Variables): Variables {
  const files = new Set(Object.keys(overrides).map((name) => `${name}_FILE`))
  return { ...Object.fromEntries(Object.entries(env).filter(([name]) => !files.has(name))), ...overrides }
}
