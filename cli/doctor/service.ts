/** The programs of the service: worker, API and site, and the ports that they listen on. */
import type { Database } from '../../db/connection.ts'
import { countAliveWorkers, heartbeatSecondsMax } from '../../db/operations/workers.ts'
import { isLoopback } from '../../platform/config/mail-values.ts'
import { isFreePort } from '../../platform/embedded/ports.ts'
import { type Check, combine, type Finding, fail, notChecked, ok } from './check.ts'
import { type DatabaseAccess, withDatabase } from './postgres.ts'
import type { Target } from './target.ts'
import { startWorkerFix } from './task-queue.ts'

const requestMillisMax = 5000

const listPrograms = ({ apiUrl, siteUrl }: Target) => [
  { name: 'api', url: apiUrl, variable: 'PORT', urlVariable: 'SVC_API_URL' },
  { name: 'site', url: siteUrl, variable: 'SVC_SITE_PORT', urlVariable: 'SVC_SITE_URL' },
]
type Program = ReturnType<typeof listPrograms>[number]

export function serviceChecks(target: Target, database: DatabaseAccess): Check[] {
  const programs = listPrograms(target)
  return [
    { name: 'worker', run: () => withDatabase(database, checkWorkers) },
    ...programs.map((program) => ({ name: program.name, run: () => checkProgram(program, target) })),
    { name: 'ports', run: () => checkPorts(programs) },
  ]
}

async function checkWorkers(sql: Database): Promise<Finding> {
  const alive = await countAliveWorkers(sql)
  const condition = `with a heartbeat in the last ${heartbeatSecondsMax} s`
  if (alive === 0) return fail(`no worker ${condition}`, startWorkerFix)
  return ok(`${alive} worker${alive === 1 ? '' : 's'} ${condition}`)
}

async function checkProgram({ name, url, urlVariable }: Program, { running }: Target): Promise<Finding> {
  if (url === undefined) return notChecked('the configuration is missing or wrong')
  const reply = await fetchReadiness(url)
  if (reply === 200) return ok(`${url} is ready`)
  const fix = running
    ? `See logs/${name}.log in the data folder, and run npm start again if it does not come back.`
    : `Start it (npm run ${name}) and see its log, or correct ${urlVariable}.`
  if (typeof reply === 'string') return fail(`${url} does not answer: ${reply}`, fix)
  // A proxy in front of it does not publish this route.
  if (reply < 500 && !isLoopback(new URL(url).hostname)) return ok(`${url} answers`)
  return fail(`${url}/readyz answers ${reply}: it starts, drains, or is another program`, fix)
}

/** The status, or why there is none. */
const fetchReadiness = (url: string): Promise<number | string> =>
  fetch(`${url}/readyz`, { redirect: 'manual', signal: AbortSignal.timeout(requestMillisMax) }).then(
    ({ status }) => status,
    (error: Error) => (error.cause as Error | undefined)?.message || error.message,
  )

/** Ports of this machine are free, or the programs of the service listen on them. */
async function checkPorts(programs: readonly Program[]): Promise<Finding> {
  const local = programs.flatMap(({ url, ...program }) => {
    if (url === undefined) return []
    const { hostname, port } = new URL(url)
    return isLoopback(hostname) && port !== '' ? [{ ...program, url, port: Number(port) }] : []
  })
  const states = await Promise.all(
    local.map(async ({ url, ...program }) => {
      const isOurs = typeof (await fetchReadiness(url)) === 'number'
      const state = isOurs ? 'used by the service' : (await isFreePort(program.port)) ? 'free' : 'taken'
      return { ...program, state }
    }),
  )
  const details = states.map(({ name, port, state }) => `${port} (${name}) is ${state}`)
  const problems = states.map(({ name, variable, port, state }) => {
    const fix = `End that program, or set ${variable} to another port.`
    return state === 'taken' && fail(`port ${port} of the ${name} is taken by another program`, fix)
  })
  return combine(details.join(', ') || 'no program of the service listens on this machine', problems)
}
