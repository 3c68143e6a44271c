/** `svc fleet`: what the fleet's instances are called at their providers. Works without the API, with the worker's variables. */
import type { Command } from 'commander'
import { runWithWorkerEnvironment } from '../worker-environment.ts'
import { confirm } from './confirmation.ts'
import { addExamples } from './examples.ts'
import { exitCodes } from './exit-codes.ts'
import type { GlobalOptions } from './options.ts'

interface AdoptOptions extends GlobalOptions {
  readonly name: string
  readonly force?: true
  readonly yes?: true
}

const needs = 'Needs the variables of the worker, or a stack in SVC_DATA_DIR'

export function addFleetCommands(program: Command): void {
  const fleet = program.command('fleet').description('the providers of the regions, and the name of the fleet there')
  addExamples(fleet.command('check'), ['', '--json'])
    .description(
      `check credentials and settings of every region at its provider, and the name of the fleet; creates nothing. ${needs}. Exit code 1 if one fails`,
    )
    .action((_, command: Command) => runFleet(['check'], command.optsWithGlobals()))
  addExamples(fleet.command('adopt'), ['--name production'])
    .requiredOption('--name <name>', 'the name: 1 to 32 lower-case letters, digits and inner hyphens')
    .option('--force', 'also instances that the database does not know: after a restore')
    .option('-y, --yes', 'do not ask for confirmation on a terminal')
    .description(
      `give instances without a name the name of this fleet; then set SVC_FLEET_NAME and restart the workers. ${needs}. Exit code 1 if an instance was not adopted`,
    )
    .action((_, command: Command) => adopt(command.optsWithGlobals()))
}

async function adopt(options: AdoptOptions): Promise<void> {
  const { name, force } = options
  const which = force ? 'all instances without a name' : 'the instances without a name that the database knows'
  await confirm(
    `Give ${which} the name ${name}? If the database is a copy, they may be another control plane's.`,
    options,
  )
  await runFleet(['adopt', '--name', name, ...(force ? ['--force'] : [])], options)
}

/** The program reports by itself. Any other exit code than 0 and 1 is a usage error. */
async function runFleet(words: readonly string[], { json }: GlobalOptions): Promise<void> {
  const exitCode = await runWithWorkerEnvironment('activities/fleet/fleet.ts', [...words, ...(json ? ['--json'] : [])])
  if (exitCode !== 0) process.exitCode = exitCode === 1 ? exitCodes.failed : exitCodes.usage
}
