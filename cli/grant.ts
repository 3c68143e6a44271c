/** `npm run grant -- EMAIL`: `svc users grant` with a usage of its own, for an account of the running stack. */
import { parseArgs } from 'node:util'
import { findUserByEmail, grantPlan, type Plan } from './plan-grants.ts'
import { connect } from './svc/connection.ts'

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
  const operator = await connect({})
  const user = await findUserByEmail(operator, email)
  if (!user) throw new Error(`There is no account with the address ${email}. Sign up first.`)
  await grantPlan(operator, user.id, plan)
  const addons = plan.addons === 0 ? '' : ` with ${plan.addons} add-on${plan.addons === 1 ? '' : 's'}`
  console.log(`${email} now has the ${plan.plan_tier} plan${addons}.`)
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
