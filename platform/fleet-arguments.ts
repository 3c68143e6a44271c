/** The arguments of `npm run fleet`, which the command and the program behind it read. */
import { parseArgs } from 'node:util'
import { fleetNamePattern } from './config/values.ts'

export type FleetCommand =
  | { readonly name: 'status'; readonly json: boolean }
  | { readonly name: 'reconcile'; readonly json: boolean; readonly dryRun: boolean; readonly force: boolean }
  | { readonly name: 'check'; readonly json: boolean }
  | { readonly name: 'adopt'; readonly json: boolean; readonly fleetName: string; readonly force: boolean }
  | { readonly name: 'drain' | 'resume'; readonly region: string }
  | { readonly name: 'help'; readonly text: string }

/** The arguments are wrong. The message names the wrong word and the right ones. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** EX_USAGE of sysexits.h, since 1 and 2 are results of the commands. */
export const usageExitCode = 64

type Name = 'status' | 'reconcile' | 'check' | 'adopt' | 'drain' | 'resume'
type Flag = 'json' | 'dry-run' | 'force'

interface Command {
  readonly flags: readonly Flag[]
  readonly takesRegion: boolean
  readonly takesName?: true
  readonly help: string
}

const commands: Readonly<Record<Name, Command>> = {
  status: {
    flags: ['json'],
    takesRegion: false,
    help: `Shows each region with its sessions, instances and the last check of its provider, from the database.

  npm run fleet -- status
  npm run fleet -- status --json`,
  },
  reconcile: {
    flags: ['dry-run', 'force', 'json'],
    takesRegion: false,
    help: `Lists the instances of every region at its provider, compares them with the database, and destroys those without an
owner, as the job sweep_orphans does every minute.

  --dry-run  changes nothing, neither at a provider nor in the database
  --force    destroys also when most instances of a region seem to have no owner. Use it when you have checked that the
             database is the right one
  --json     prints the result as JSON

  npm run fleet -- reconcile --dry-run
  npm run fleet -- reconcile --force

Exit code: 0; 1 when a region or an instance failed, or a region was blocked; 2 when an instance waits for a second
observation.`,
  },
  check: {
    flags: ['json'],
    takesRegion: false,
    help: `Checks the credentials and the settings of every region at its provider, and whether SVC_FLEET_NAME fits the instances
there. Creates nothing. Exit code 1 if one fails.

  npm run fleet -- check`,
  },
  adopt: {
    flags: ['force', 'json'],
    takesRegion: false,
    takesName: true,
    help: `Gives the instances without a name of all regions in a cloud the name of this fleet: those that the database knows.
Instances that have a name keep it. Restart all workers with SVC_FLEET_NAME right afterwards.

  --name     the name: 1 to 32 lower-case letters, digits and inner hyphens
  --force    adopts also instances that the database does not know. Use it after a restore, when no other control plane
             uses the account: the sweep destroys those without an owner
  --json     prints the result as JSON

  npm run fleet -- adopt --name production

Exit code: 0; 1 when an instance was not adopted.`,
  },
  drain: {
    flags: [],
    takesRegion: true,
    help: `Stops new sessions in a region. Its live sessions run on, and its warm instances are retired.

  npm run fleet -- drain eu-central`,
  },
  resume: {
    flags: [],
    takesRegion: true,
    help: `Allows new sessions in a drained region again.

  npm run fleet -- resume eu-central`,
  },
}

const names = Object.keys(commands) as Name[]
const usageOf = (name: Name): string =>
  `npm run fleet -- ${name}${commands[name].takesRegion ? ' REGION' : ''}${commands[name].takesName ? ' --name NAME' : ''}${commands[name].flags.map((flag) => ` [--${flag}]`).join('')}`
const overview = `Usage:\n${names.map((name) => `  ${usageOf(name)}`).join('\n')}\n\nHelp for one command: npm run fleet -- status --help\n`

/** Throws {@link UsageError}. */
export function parseFleetArguments(args: readonly string[]): FleetCommand {
  const { tokens } = parseArgs({
    args: [...args],
    options: { name: { type: 'string' } },
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const words = tokens.flatMap((token) => (token.kind === 'positional' ? [token.value] : []))
  const options = tokens.flatMap((token) => (token.kind === 'option' ? [token] : []))
  const isHelp = options.some(({ name }) => name === 'help' || name === 'h')
  const [word, region, ...more] = words
  if (word === undefined && (isHelp || options.length === 0)) return { name: 'help', text: overview }
  const name = names.find((one) => one === word)
  if (!name)
    throw new UsageError(`${word ?? options[0]?.rawName} is not a command. The commands are: ${names.join(', ')}.`)
  if (isHelp) return { name: 'help', text: `Usage: ${usageOf(name)}\n\n${commands[name].help}\n` }
  const named = commands[name].takesName ? options.findLast((option) => option.name === 'name') : undefined
  for (const { rawName, name: option, inlineValue } of options)
    if (!commands[name].takesName || option !== 'name') checkFlag(name, option, rawName, inlineValue === true)
  const has = (flag: Flag) => options.some((option) => option.name === flag)
  const surplus = commands[name].takesRegion ? more[0] : region
  if (surplus !== undefined) throw new UsageError(`${surplus} is one word too many. Usage: ${usageOf(name)}`)
  if (name === 'status') return { name, json: has('json') }
  if (name === 'reconcile') return { name, json: has('json'), dryRun: has('dry-run'), force: has('force') }
  if (name === 'check') return { name, json: has('json') }
  if (name === 'adopt') return { name, json: has('json'), fleetName: fleetNameOf(named?.value), force: has('force') }
  if (region === undefined) throw new UsageError(`The name of a region is missing. Usage: ${usageOf(name)}`)
  return { name, region }
}

function fleetNameOf(text: string | undefined): string {
  if (text === undefined) throw new UsageError(`The name of the fleet is missing. Usage: ${usageOf('adopt')}`)
  if (fleetNamePattern.test(text)) return text
  throw new UsageError(
    `${text} is not 1 to 32 lower-case letters, digits and inner hyphens. Usage: ${usageOf('adopt')}`,
  )
}

function checkFlag(name: Name, option: string, rawName: string, hasValue: boolean): void {
  const flags = commands[name].flags.map((flag) => `--${flag}`)
  const known = [...(commands[name].takesName ? ['--name'] : []), ...flags, '--help'].join(', ')
  if (!flags.includes(`--${option}`))
    throw new UsageError(`${rawName} is not an option of ${name}. Its options are: ${known}.`)
  if (hasValue) throw new UsageError(`${rawName} takes no value. Usage: ${usageOf(name)}`)
}
