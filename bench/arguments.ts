/** The command line of the measuring programs. */
import { Command, InvalidArgumentError, Option } from 'commander'
import { networks } from './bonding-networks.ts'
import { type Measurement, measurements } from './figures.ts'

export interface BenchArguments {
  /** In the order of the table. */
  readonly measurements: readonly Measurement[]
  readonly isWholeRun: boolean
  readonly json?: string
  readonly pairs?: number
  /** Of the measurement `bonding`, by name; all when there are none. */
  readonly networks: readonly string[]
}

/** Each user is used once by the measurements of latency, so their number limits the pairs. */
const pairsMax = 30

export const jsonOption = new Option('--json <file>', 'also write the rows as JSON to this file')

/** Ends the process with the usage for `--help` and for arguments that are not valid. */
export function readBenchArguments(argv: readonly string[]): BenchArguments {
  const command = new Command('npm run bench --')
    .description('Measures the service on this machine against floors, and prints a table (docs/performance.md).')
    .argument('[measurements...]', `one or more of: ${measurements.join(', ')}; default: all`, toMeasurements)
    .addOption(jsonOption)
    .option('--pairs <number>', 'pairs of floor and service per measurement', toPairs)
    .addOption(
      new Option('--networks <names...>', 'those of the measurement "bonding"')
        .choices(networks.map(({ name }) => name))
        .default([], 'all'),
    )
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse(argv, { from: 'user' })
  const named: readonly Measurement[] = command.args.length > 0 ? command.processedArgs[0] : measurements
  const selected = new Set(named)
  return {
    ...command.opts<Pick<BenchArguments, 'json' | 'pairs' | 'networks'>>(),
    measurements: measurements.filter((name) => selected.has(name)),
    isWholeRun: selected.size === measurements.length,
  }
}

function toMeasurements(name: string, before: readonly Measurement[] | undefined): readonly Measurement[] {
  const known = measurements.find((measurement) => measurement === name)
  if (known === undefined) throw new InvalidArgumentError(`Use one of: ${measurements.join(', ')}.`)
  return [...(before ?? []), known]
}

function toPairs(text: string): number {
  const pairs = Number(text)
  if (!Number.isInteger(pairs) || pairs < 1 || pairs > pairsMax)
    throw new InvalidArgumentError(`Use a whole number from 1 to ${pairsMax}.`)
  return pairs
}
