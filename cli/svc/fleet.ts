/** `svc fleet`: the fleet at its providers. Works without the API, with the worker's variables. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { fleetNamePattern } from '../../platform/config/values.ts'
import { confirm, defineCommand } from './commands.ts'
import { confirmationOption, type GlobalOptions } from './options.ts'

// The commands import their modules when they run: these are large, and the other commands do not load them.

export function addFleetCommands(program: Command): void {
  const fleet = program
    .command('fleet')
    .summary('the instances of all regions, and their providers')
    .description(
      'the instances of all regions, and their providers; works without the API, with the variables of the worker or a stack in SVC_DATA_DIR',
    )
  defineCommand<GlobalOptions>(fleet.command('status'), {
    description: 'show each region with its sessions, instances and the last check of its provider, from the database',
    run: async (options) => (await import('../direct/fleet-status.ts')).showStatus(options),
  })
  addCompareCommand(fleet)
  defineCommand<GlobalOptions>(fleet.command('check'), {
    description:
      'check credentials and settings of every region at its provider, and the name of the fleet; creates nothing. Exit code 1 if one fails',
    run: async (options) => (await import('../direct/fleet-check.ts')).check(options),
  })
  addAdoptCommand(fleet)
}

interface CompareOptions extends GlobalOptions {
  readonly dryRun?: boolean
  readonly force?: boolean
}

function addCompareCommand(fleet: Command): void {
  defineCommand<CompareOptions>(fleet.command('compare'), {
    description:
      'compare the instances of every region at its provider with the database, and destroy those without an owner, as the job sweep_orphans does every minute. Exit code 1 if a region or an instance failed, or a region was blocked; 6 if an instance waits for a second observation',
    examples: ['--dry-run', '', '--force --yes'],
    options: [
      new Option('--dry-run', 'change nothing, neither at a provider nor in the database'),
      new Option(
        '--force',
        'destroy also when most instances of a region seem to have no owner: when you have checked that the database is the right one',
      ),
      confirmationOption,
    ],
    run: async ({ dryRun = false, force = false, ...options }) => {
      const where = force ? ', also where they are most of a region' : ''
      if (!dryRun) await confirm(`Destroy the instances without an owner${where}?`, options)
      const { compare } = await import('../direct/fleet-comparison-report.ts')
      await compare({ dryRun, force }, options)
    },
  })
}

interface AdoptOptions extends GlobalOptions {
  readonly name: string
  readonly force?: boolean
}

function addAdoptCommand(fleet: Command): void {
  defineCommand<AdoptOptions>(fleet.command('adopt'), {
    description:
      'give instances without a name the name of this fleet; then set SVC_FLEET_NAME and restart the workers. Exit code 1 if an instance was not adopted',
    examples: ['--name production'],
    options: [
      new Option('--name <name>', 'the name: 1 to 32 lower-case letters, digits and inner hyphens')
        .argParser(parseFleetName)
        .makeOptionMandatory(),
      new Option('--force', 'also instances that the database does not know: after a restore'),
      confirmationOption,
    ],
    run: async ({ name, force = false, ...options }) => {
      const which = force ? 'all instances without a name' : 'the instances without a name that the database knows'
      await confirm(
        `Give ${which} the name ${name}? If the database is a copy, they may be another control plane's.`,
        options,
      )
      const { adopt } = await import('../direct/fleet-adoption.ts')
      await adopt({ fleetName: name, force }, options)
    },
  })
}

function parseFleetName(text: string): string {
  if (fleetNamePattern.test(text)) return text
  throw new InvalidArgumentError('It is not 1 to 32 lower-case letters, digits and inner hyphens.')
}
