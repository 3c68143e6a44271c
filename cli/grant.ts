/** `npm run grant -- EMAIL`: grants an account of the running stack a complimentary plan. */
import { parseArgs } from 'node:util'
import { readStackConfig } from '../platform/config/stack.ts'
import { readStoredSecrets } from '../platform/embedded/secrets.ts'
import { createOperatorClient, findUserId, grantPlan, type Plan } from './plan-grants.ts'
import { readRunningStack } from './stack-state.ts'

const usage = 'Usage: npm run grant -- EMAIL [--plan paid|free] [--addons 0..3]'

function readArguments(): { email: string; plan: Plan } {
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
  const { email, plan } = readArguments()
  const { dataDir, secrets } = readStackConfig()
  const api = (await readRunningStack(dataDir))?.api
  if (!api) throw new Error(`No stack is running in ${dataDir}. Start it first: npm start`)
  const password = secrets.SVC_OPERATOR_PASSWORD ?? (await readStoredSecrets(dataDir)).SVC_OPERATOR_PASSWORD
  if (!password) throw new Error('The operator password is missing: set SVC_OPERATOR_PASSWORD')
  const operator = createOperatorClient(api, password)
  const userId = await findUserId(operator, email)
  if (!userId) throw new Error(`There is no account with the address ${email}. Sign up first.`)
  await grantPlan(operator, userId, plan)
  const addons = plan.addons === 0 ? '' : ` with ${plan.addons} add-on${plan.addons === 1 ? '' : 's'}`
  console.log(`${email} now has the ${plan.plan_tier} plan${addons}.`)
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
