/** The configuration of all programs, and the stack that is examined. */
import { adviseVariable } from '../../platform/config/variable-texts.ts'
import { findProcess } from '../../platform/processes.ts'
import { type Check, combine, type Finding, fail, ok } from './check.ts'
import type { Target } from './target.ts'

export const configurationChecks = (target: Target): Check[] => [
  { name: 'configuration', run: async () => checkConfiguration(target) },
  ...(target.running ? [{ name: 'stack', run: () => checkStack(target.stack.dataDir, target.running?.pid ?? 0) }] : []),
]

const checkConfiguration = ({ configProblems, running, stack }: Target) =>
  combine(
    `the variables of api, worker and site are valid${running ? `, with those of the stack in ${stack.dataDir}` : ''}`,
    configProblems.map((problem) => fail(problem, fixOf(problem))),
  )

/** A problem of a variable begins with its name, or with the name of its file. */
function fixOf(problem: string): string {
  const [name = ''] = /^[A-Z0-9_]*/.exec(problem) ?? []
  const advice = adviseVariable(name.replace(/_FILE$/, '')) ?? adviseVariable(name)
  return advice ? `Correct ${advice}` : 'Correct the variables (docs/operating.md, Configuration).'
}

async function checkStack(dataDir: string, pid: number): Promise<Finding> {
  if (await findProcess(pid)) return ok(`npm start (process ${pid}) runs in ${dataDir}`)
  return fail(
    `npm start (process ${pid}) of ${dataDir} was killed, so nothing restarts its programs`,
    'Run npm start again: it ends what is left, and keeps the data.',
  )
}
