/** `npm run grant -- EMAIL`: gives an account of the running stack a complimentary plan, so that it may start relays. */
import { parseArgs } from 'node:util'
import { readStackConfig } from '../platform/config/stack.ts'
import { readKeptSecrets } from '../platform/embedded/secrets.ts'
import { readRunning } from './kept-files.ts'
import { createOperator, type Plan } from './operator.ts'

const usage = 'npm run grant -- EMAIL [--plan paid|free] [--addons 0..3]'

function readCommand(): { email: string; plan: Plan } {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { plan: { type: 'string', default: 'paid' }, addons: { type: 'string', default: '0' } },
  })
  const [email, ...more] = positionals
  const [tier, addons] = [values.plan, Number(values.addons)]
  if (!email || more.length > 0 || (tier !== 'paid' && tier !== 'free') || ![0, 1, 2, 3].includes(addons))
    throw new Error(usage)
  return { email, plan: { plan_tier: tier, addons } }
}

try {
  const { email, plan } = readCommand()
  const stack = readStackConfig()
  const api = (await readRunning(stack.dataDir))?.api
  if (!api) throw new Error(`Nothing is running on ${stack.dataDir}. Start it first: npm start`)
  const password = stack.secrets.SVC_OPERATOR_PASSWORD ?? (await readKeptSecrets(stack.dataDir)).SVC_OPERATOR_PASSWORD
  if (!password) throw new Error("The operator's password is not known here: set SVC_OPERATOR_PASSWORD")
  const operator = createOperator(api, password)
  const userId = await operator.userIdOf(email)
  if (!userId) throw new Error(`No account has the address ${email}: sign up first`)
  await operator.grant(userId, plan)
  console.log(`${email} has the ${plan.plan_tier} plan now${plan.addons > 0 ? ` with add-ons: ${plan.addons}` : ''}.`)
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
