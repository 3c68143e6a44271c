/** The configuration of all programs, and the stack that is examined. */
import type { StackConfig } from '../../platform/config/stack.ts'
import { adviseVariable } from '../../platform/config/variable-texts.ts'
import { findProcess } from '../../platform/processes.ts'
import type { RunningStack } from '../stack-state.ts'
import { combine, type Finding, fail, ok } from './check.ts'
import type { Target } from './target.ts'

export const checkConfiguration = async ({ configProblems, running, stack }: Target): Promise<Finding> =>
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

export async function checkStack({ dataDir }: StackConfig, { pid }: RunningStack): Promise<Finding> {
  if (await findProcess(pid)) return ok(`npm start (process ${pid}) runs in ${dataDir}`)
  return fail(
    `npm start (process ${pid}) of ${dataDir} was killed, so nothing restarts its programs`,
    'Run npm start again: it ends what is left, and keeps the data.',
  )
}
