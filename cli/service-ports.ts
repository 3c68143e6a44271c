/** Chooses the ports of the API and the site: the configured ones, or those of the last start, or else free ones. */
import type { StackConfig } from '../platform/config/stack.ts'
import { choosePort, type PortChoice } from '../platform/embedded/ports.ts'
import { readState, updateState } from './stack-state.ts'

export type ServicePorts = Awaited<ReturnType<typeof chooseServicePorts>>

/** Tried when the default port is taken. */
const alternatives = Array.from({ length: 18 }, (_, index) => 8082 + index)

/** Throws when a configured port is taken, with the way out. */
export async function chooseServicePorts(
  { port, sitePort }: StackConfig,
  dataDir: string,
  notify: (text: string) => void,
) {
  if (port !== undefined && port === sitePort)
    throw new Error(`PORT and SVC_SITE_PORT are both ${port}: the API and the site need different ports.`)
  const last = await readState(dataDir)
  const choose = async (choice: PortChoice) => {
    const chosen = await choosePort(choice)
    const [first] = choice.preferred
    if (choice.explicit === undefined && chosen !== first)
      notify(`! Port ${first} is taken by another program: ${choice.server} listens on ${chosen}`)
    return chosen
  }
  const api = await choose({
    server: 'the API',
    variable: 'PORT',
    explicit: port,
    preferred: withoutTaken([last.apiPort, 8080, ...alternatives], [sitePort]),
  })
  const site = await choose({
    server: 'the site',
    variable: 'SVC_SITE_PORT',
    explicit: sitePort,
    preferred: withoutTaken([last.sitePort, 8081, ...alternatives], [api]),
  })
  if (api !== last.apiPort || site !== last.sitePort) await updateState(dataDir, { apiPort: api, sitePort: site })
  return { api, site }
}

const withoutTaken = (ports: readonly (number | undefined)[], taken: readonly (number | undefined)[]): number[] =>
  ports.filter((port): port is number => port !== undefined && !taken.includes(port))
