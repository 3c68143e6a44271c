/** `svc doctor`: says what is broken, and how to repair it. */
import type { Command } from 'commander'
import { processEnvironment } from '../../platform/config/environment.ts'
import { defineCommand } from '../svc/commands.ts'
import type { GlobalOptions } from '../svc/options.ts'

export function addDoctorCommand(program: Command): void {
  const doctor = program.command('doctor').addHelpText(
    'after',
    `
Checks the stack that npm start runs in SVC_DATA_DIR (.svc by default), or else the service that the environment
configures: then run it with the variables of a worker. Changes nothing. --json prints
{"checks":[{"name","status":"ok"|"warn"|"fail","detail","fix"}]}. Exit code 1: a check failed.`,
  )
  defineCommand(doctor, {
    description: 'check the configuration, the servers, the programs and this machine, and print a fix for each fault',
    examples: ['', `--json | jq '.checks[] | select(.status != "ok")'`],
    run: examineService,
  })
}

async function examineService({ json, api, passwordFile }: GlobalOptions): Promise<void> {
  // Large modules, which the other commands do not load.
  const [{ examine }, { exitCodeOf, formatJson, formatReport }, { readTarget }] = await Promise.all([
    import('./checks.ts'),
    import('./report.ts'),
    import('./target.ts'),
  ])
  const password =
    passwordFile === undefined ? {} : { SVC_OPERATOR_PASSWORD: undefined, SVC_OPERATOR_PASSWORD_FILE: passwordFile }
  const results = await examine(await readTarget({ ...processEnvironment(), ...password }, api))
  process.stdout.write(json ? formatJson(results) : formatReport(results))
  process.exitCode = exitCodeOf(results)
}
