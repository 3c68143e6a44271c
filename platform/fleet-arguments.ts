/** The arguments of `npm run fleet`, which the command and the program behind it read. */
import { parseArgs } from 'node:util'

export type FleetCommand =
  | { readonly name: 'status'; readonly json: boolean }
  | { readonly name: 'reconcile'; readonly json: boolean; readonly dryRun: boolean; readonly force: boolean }
  | { readonly name: 'check' }
  | { readonly name: 'drain' | 'resume'; readonly region: string }
  | { readonly name: 'help'; readonly text: string }

/** The arguments are wrong. The message names the wrong word and the right ones. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** EX_USAGE of sysexits.h, since 1 and 2 are results of the commands. */
export const usageExitCode = 64

type Name = 'status' | 'reconcile' | 'check' | 'drain' | 'resume'
type Flag = 'json' | 'dry-run' | 'force'

interface Command {
  readonly flags: readonly Flag[]
  readonly takesRegion: boolean
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
    flags: [],
    takesRegion: false,
    help: `Checks the credentials and the settings of every region at its provider. Creates nothing. Exit code 1 if one fails.

  npm run fleet -- check`,
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
  `npm run fleet -- ${name}${commands[name].takesRegion ? ' REGION' : ''}${commands[name].flags.map((flag) => ` [--${flag}]`).join('')}`
const overview = `Usage:\n${names.map((name) => `  ${usageOf(name)}`).join('\n')}\n\nHelp for one command: npm run fleet -- status --help\n`

/** Throws {@link UsageError}. */
export function parseFleetArguments(args: readonly string[]): FleetCommand {
  const { tokens } = parseArgs({ args: [...args], strict: false, allowPositionals: true, tokens: true })
  const words = tokens.flatMap((token) => (token.kind === 'positional' ? [token.value] : []))
  const options = tokens.flatMap((token) => (token.kind === 'option' ? [token] : []))
  const isHelp = options.some(({ name }) => name === 'help' || name === 'h')
  const [word, region, ...more] = words
  if (word === undefined && (isHelp || options.length === 0)) return { name: 'help', text: overview }
  const name = names.find((one) => one === word)
  if (!name)
    throw new UsageError(`${word ?? options[0]?.rawName} is not a command. The commands are: ${names.join(', ')}.`)
  if (isHelp) return { name: 'help', text: `Usage: ${usageOf(name)}\n\n${commands[name].help}\n` }
  for (const { rawName, name: option, inlineValue } of options) checkFlag(name, option, rawName, inlineValue === true)
  const has = (flag: Flag) => options.some((option) => option.name === flag)
  const surplus = commands[name].takesRegion ? more[0] : region
  if (surplus !== undefined) throw new UsageError(`${surplus} is one word too many. Usage: ${usageOf(name)}`)
  if (name === 'status') return { name, json: has('json') }
  if (name === 'reconcile') return { name, json: has('json'), dryRun: has('dry-run'), force: has('force') }
  if (name === 'check') return { name }
  if (region === undefined) throw new UsageError(`The name of a region is missing. Usage: ${usageOf(name)}`)
  return { name, region }
}

function checkFlag(name: Name, option: string, rawName: string, hasValue: boolean): void {
  const flags = commands[name].flags.map((flag) => `--${flag}`)
  const known = [...flags, '--help'].join(', ')
  if (!flags.includes(`--${option}`))
    throw new UsageError(`${rawName} is not an option of ${name}. Its options are: ${known}.`)
  if (hasValue) throw new UsageError(`${rawName} takes no value. Usage: ${usageOf(name)}`)
}
