/** The commands of `svc`. */
import { Command } from 'commander'
import { addDoctorCommand } from '../doctor/command.ts'
import { addAuditCommand } from './audit.ts'
import { addBillingCommands } from './billing.ts'
import { pathOf } from './commands.ts'
import { addCompletionCommand } from './completion.ts'
import { exitCodeTexts } from './exit-codes.ts'
import { addFleetCommands } from './fleet.ts'
import { addIncidentsCommands } from './incidents.ts'
import { addInstancesCommands } from './instances.ts'
import { addJobsCommands } from './jobs.ts'
import { addOverviewCommand } from './overview.ts'
import { addRegionsCommands } from './regions.ts'
import { addSessionsCommands } from './sessions.ts'
import { addUsersCommands } from './users.ts'

const exitCodesHelp = Object.entries(exitCodeTexts).map(([code, text]) => `  ${code}  ${text}`)

export function createProgram(): Command {
  const program = new Command('svc')
    .description('Shows and changes what a service does, through its API for operators.')
    .option('--api <url>', 'address of the API; otherwise SVC_API_URL, or the stack that runs in SVC_DATA_DIR')
    .option(
      '--password-file <file>',
      'file with the operator password; otherwise SVC_OPERATOR_PASSWORD, SVC_OPERATOR_PASSWORD_FILE, or the one generated in SVC_DATA_DIR',
    )
    .option('--json', 'print JSON instead of tables')
    .addHelpText('after', `\nExit codes:\n${exitCodesHelp.join('\n')}`)
  addOverviewCommand(program)
  addUsersCommands(program)
  addSessionsCommands(program)
  addBillingCommands(program)
  addInstancesCommands(program)
  addRegionsCommands(program)
  addFleetCommands(program)
  addIncidentsCommands(program)
  addJobsCommands(program)
  addAuditCommand(program)
  addDoctorCommand(program)
  addCompletionCommand(program)
  prepareCommands(program)
  return program
}

/** Settings that every command needs, since commands inherit none that are set after their creation. */
function prepareCommands(command: Command): void {
  command
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError(`(See ${pathOf(command)} --help)`)
  for (const child of command.commands) prepareCommands(child)
}
