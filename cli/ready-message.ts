/** The message of a stack that is ready: its addresses, and commands to paste that start a relay. */
import type { DemoAccount } from './demo-account.ts'

export interface ReadyStack {
  api: string
  site: string
  temporalUi: string | undefined
  postgres: string
  /** Where to find the operator password. */
  operatorPassword: string
  logs: string
  demo: DemoAccount | undefined
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Commands for bash and zsh that need only curl and sed. */
export function curlCommands(api: string, demo: DemoAccount) {
  const base = `${api}/api/v1`
  const json = `-H 'Content-Type: application/json'`
  const bearer = `-H "Authorization: Bearer $JWT"`
  const newKey = `$(uuidgen -r 2>/dev/null || node -p 'crypto.randomUUID()')`
  const credentials = quoted(JSON.stringify(demo))
  return {
    signIn: `JWT=$(curl -s ${base}/auth/login ${json} -d ${credentials} | sed -E 's/.*"cp_access_jwt":"([^"]+)".*/\\1/')`,
    start: `curl -s ${base}/relay/start ${bearer} -H "Idempotency-Key: ${newKey}" ${json} -d '{"connection_id":"demo"}'`,
    show: `curl -s ${base}/relay/active ${bearer}`,
    stop: `curl -s ${base}/relay/stop ${bearer} ${json} -d '{"connection_id":"demo","immediate":true}'`,
  }
}

export function formatReadyMessage(stack: ReadyStack): string {
  const rows: [string, string | undefined][] = [
    ['Site', stack.site],
    ['API', stack.api],
    ['API docs', `${stack.api}/docs`],
    ['Temporal UI', stack.temporalUi],
    ['Metrics', `${stack.api}/metrics`],
    ['Postgres', stack.postgres],
    ['Demo account', stack.demo && `${stack.demo.email}   ${stack.demo.password}`],
    ['Operator', `user "operator", password ${stack.operatorPassword}`],
    ['Logs', stack.logs],
  ]
  const lines = rows.flatMap(([name, value]) => (value ? [`  ${name.padEnd(14)}${value}`] : []))
  if (stack.demo) {
    const { signIn, start, show, stop } = curlCommands(stack.api, stack.demo)
    lines.push('', '  Sign in, start a relay and show it (paste into a shell):', '', signIn, start, show)
    lines.push('', '  Stop the relay:', '', stop)
    lines.push('', '  See all of it in another terminal:  npm run demo')
  }
  lines.push('', '  Give an account a paid plan:  npm run grant -- EMAIL')
  return ['', ...lines, '', '  Press Ctrl-C to stop everything.', ''].join('\n')
}
