/** Where the API and the site listen: where somebody asked for it, or else where they did last time, or on the next free port. */
import type { StackConfig } from '../platform/config/stack.ts'
import { choosePort } from '../platform/embedded/ports.ts'
import { readState, remember } from './kept-files.ts'

export interface ServicePorts {
  readonly api: number
  readonly site: number
}

/** Tried when the usual one is taken. */
const others = Array.from({ length: 18 }, (_, index) => 8082 + index)

/** Throws when a port that was asked for is taken; the error says what to do. */
export async function chooseServicePorts(
  { port, sitePort }: StackConfig,
  dataDir: string,
  note: (text: string) => void,
): Promise<ServicePorts> {
  if (port !== undefined && port === sitePort)
    throw new Error(`PORT and SVC_SITE_PORT are both ${port}: the API and the site need a port each.`)
  const last = await readState(dataDir)
  const choose = async (wish: {
    what: string
    variable: string
    explicit: number | undefined
    preferred: number[]
  }) => {
    const chosen = await choosePort(wish)
    const [wanted] = wish.preferred
    if (wish.explicit === undefined && chosen !== wanted)
      note(`! Port ${wanted} is taken by another program: ${wish.what} listens on ${chosen}`)
    return chosen
  }
  const api = await choose({
    what: 'the API',
    variable: 'PORT',
    explicit: port,
    preferred: inOrder([last.apiPort, 8080, ...others], [sitePort]),
  })
  const site = await choose({
    what: 'the site',
    variable: 'SVC_SITE_PORT',
    explicit: sitePort,
    preferred: inOrder([last.sitePort, 8081, ...others], [api]),
  })
  if (api !== last.apiPort || site !== last.sitePort) await remember(dataDir, { apiPort: api, sitePort: site })
  return { api, site }
}

const inOrder = (ports: readonly (number | undefined)[], taken: readonly (number | undefined)[]): number[] =>
  ports.filter((one): one is number => one !== undefined && !taken.includes(one))
