/** `svc fleet`: the fleet at its providers. Works without the API, with the worker's variables. */
import { type Command, InvalidArgumentError } from 'commander'
import { fleetNamePattern } from '../../platform/config/values.ts'
import { confirm } from './confirmation.ts'
import { addExamples } from './examples.ts'
import { addConfirmationOption, type ConfirmableOptions } from './options.ts'

interface CompareOptions extends ConfirmableOptions {
  readonly dryRun?: boolean
  readonly force?: boolean
}

interface AdoptOptions extends ConfirmableOptions {
  readonly name: string
  readonly force?: boolean
}

/** Large modules, which the other commands do not load. */
const loadCommands = () => import('../direct/fleet.ts')

export function addFleetCommands(program: Command): void {
  const fleet = program
    .command('fleet')
    .summary('the instances of all regions, and their providers')
    .description(
      'the instances of all regions, and their providers; works without the API, with the variables of the worker or a stack in SVC_DATA_DIR',
    )
  addExamples(fleet.command('status'), ['', '--json'])
    .description('show each region with its sessions, instances and the last check of its provider, from the database')
    .action(async (_, command: Command) => (await loadCommands()).showStatus(command.optsWithGlobals()))
  addCompareCommand(fleet)
  addExamples(fleet.command('check'), ['', '--json'])
    .description(
      'check credentials and settings of every region at its provider, and the name of the fleet; creates nothing. Exit code 1 if one fails',
    )
    .action(async (_, command: Command) => (await loadCommands()).check(command.optsWithGlobals()))
  addAdoptCommand(fleet)
}

function addCompareCommand(fleet: Command): void {
  const compare = fleet
    .command('compare')
    .option('--dry-run', 'change nothing, neither at a provider nor in the database')
    .option(
      '--force',
      'destroy also when most instances of a region seem to have no owner: when you have checked that the database is the right one',
    )
    .description(
      'compare the instances of every region at its provider with the database, and destroy those without an owner, as the job sweep_orphans does every minute. Exit code 1 if a region or an instance failed, or a region was blocked; 6 if an instance waits for a second observation',
    )
    .action((_, command: Command) => compareFleet(command.optsWithGlobals()))
  addExamples(addConfirmationOption(compare), ['--dry-run', '', '--force --yes'])
}

function addAdoptCommand(fleet: Command): void {
  const adopt = fleet
    .command('adopt')
    .requiredOption('--name <name>', 'the name: 1 to 32 lower-case letters, digits and inner hyphens', parseFleetName)
    .option('--force', 'also instances that the database does not know: after a restore')
    .description(
      'give instances without a name the name of this fleet; then set SVC_FLEET_NAME and restart the workers. Exit code 1 if an instance was not adopted',
    )
    .action((_, command: Command) => adoptInstances(command.optsWithGlobals()))
  addExamples(addConfirmationOption(adopt), ['--name production'])
}

function parseFleetName(text: string): string {
  if (fleetNamePattern.test(text)) return text
  throw new InvalidArgumentError('It is not 1 to 32 lower-case letters, digits and inner hyphens.')
}

async function compareFleet({ dryRun = false, force = false, ...options }: CompareOptions): Promise<void> {
  const where = force ? ', also where they are most of a region' : ''
  if (!dryRun) await confirm(`Destroy the instances without an owner${where}?`, options)
  const commands = await loadCommands()
  await commands.compare({ dryRun, force }, options)
}

async function adoptInstances({ name, force = false, ...options }: AdoptOptions): Promise<void> {
  const which = force ? 'all instances without a name' : 'the instances without a name that the database knows'
  await confirm(
    `Give ${which} the name ${name}? If the database is a copy, they may be another control plane's.`,
    options,
  )
  const commands = await loadCommands()
  await commands.adopt({ fleetName: name, force }, options)
}
