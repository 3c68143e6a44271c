/** The external services that the configuration names: relay providers of the regions, billing, and the mail server. */
import { findFleetProblem, unnamedFleet } from '../../activities/fleet/fleet-names.ts'
import { checkProvider } from '../../activities/fleet/provider-checks.ts'
import { createRelayProviders } from '../../activities/fleet/relay-providers.ts'
import { createBillingDeps } from '../../db/billing/subscriptions.ts'
import type { Database } from '../../db/connection.ts'
import { findHostProblem } from '../../platform/bindable-host.ts'
import type { Config } from '../../platform/config/config.ts'
import type { RegionConfig } from '../../platform/config/regions.ts'
import { createLog } from '../../platform/log.ts'
import { withTimeout } from '../../platform/timeout.ts'
import { createBilling } from '../../providers/billing/billing.ts'
import type { RelayNames } from '../../providers/dns/dynamic-updates.ts'
import { createRelayNames } from '../../providers/dns/relay-names.ts'
import { checkSmtp } from '../../providers/mail/smtp.ts'
import type { RelayProvider } from '../../providers/relay/provider.ts'
import { type Check, type Finding, fail, ok, warn } from './check.ts'
import type { DatabaseAccess } from './postgres.ts'

const callMillisMax = 12_000

export function providerChecks(config: Config, { sql, obstacle }: DatabaseAccess): Check[] {
  const hasCloud = config.regions.some(({ provider }) => provider !== 'local')
  // The user data of cloud instances needs the program of relays, which is built at its first use.
  const providers = hasCloud ? createRelayProviders(config, createLog('doctor', 'silent')) : undefined
  const names = createRelayNames(config)
  const checkRegion = async (config: RegionConfig): Promise<Finding> => {
    const { region, provider: kind } = config
    const provider = (await providers)?.get(region)
    if (kind === 'local' || !provider) {
      const problem = await findHostProblem(config)
      return problem === null
        ? ok('its relays are processes of the machine of the worker')
        : fail(problem, 'Correct the region in SVC_REGIONS. Run the doctor on the machine of the worker.')
    }
    const problem = await checkProvider(provider, callMillisMax)
    if (problem !== null)
      return fail(
        `${kind}: ${problem}`,
        'Correct its credentials or its entry in SVC_REGIONS (docs/relays.md), and restart the workers.',
      )
    return checkFleetName(kind, provider)
  }
  const checkFleetName = async (kind: string, provider: RelayProvider) => {
    const fleetName = config.fleet.name
    const accepted = `${kind} accepts the credentials and the settings`
    if (sql && (await obstacle) === undefined) {
      const problem = await findFleetProblem({ fleetName, sql, provider, millisMax: callMillisMax })
      if (problem) return fail(problem.text, 'Until then no worker starts.')
    }
    return fleetName === undefined ? warn(accepted, unnamedFleet) : ok(accepted)
  }
  return [
    ...config.regions.map((region) => ({ name: `region:${region.region}`, run: () => checkRegion(region) })),
    ...(names ? [{ name: 'relay-names', run: () => checkNames(names) }] : []),
    ...(sql ? [{ name: 'billing', run: () => checkBilling(config, sql) }] : []),
    { name: 'smtp', run: () => checkMail(config) },
  ]
}

async function checkNames(names: RelayNames): Promise<Finding> {
  try {
    await withTimeout(callMillisMax, 'the name server took too long', () => names.check())
    return ok(`the name server has ${names.domain}`)
  } catch (error) {
    return fail((error as Error).message, 'Correct SVC_DNS_SERVER and SVC_RELAY_DOMAIN (docs/relays.md, "Names").')
  }
}

async function checkBilling(config: Config, sql: Database): Promise<Finding> {
  const { provider } = await createBilling(config, createBillingDeps(sql))
  if (provider.name === 'sandbox') return ok('the sandbox, where purchases cost nothing')
  try {
    await withTimeout(callMillisMax, `${provider.name} did not answer within ${callMillisMax / 1000} s`, () =>
      provider.check(),
    )
    return ok(`${provider.name} accepts the credentials`)
  } catch (error) {
    const prefix = `SVC_${provider.name.toUpperCase()}`
    return fail(
      (error as Error).message,
      `Correct ${prefix}_API_KEY and the ids of ${prefix} (docs/operating.md, Billing).`,
    )
  }
}

async function checkMail({ mail: { smtp, mailbox }, logLinks }: Config): Promise<Finding> {
  if (mailbox) return ok('no mail server: the page /mailbox of the site shows all mails')
  if (!smtp)
    return warn(
      `no mail server: ${logLinks ? 'links are written to the log of the worker' : 'mails are not sent'}`,
      'Set SVC_SMTP_URL (docs/operating.md, Email).',
    )
  const server = `${smtp.host}:${smtp.port}`
  try {
    await withTimeout(callMillisMax, `no answer within ${callMillisMax / 1000} s`, () => checkSmtp({ smtp }))
    return ok(`${server} accepts ${smtp.auth ? 'the sign-in' : 'connections without a sign-in'}`)
  } catch (error) {
    return fail(`${server}: ${(error as Error).message}`, 'Correct the host, port, user and password in SVC_SMTP_URL.')
  }
}
