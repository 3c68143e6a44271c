/** The last words of a start: where everything is, and three lines to paste that start a relay. */
import type { DemoAccount } from './demo-account.ts'

export interface ReadyStack {
  api: string
  site: string
  temporalUi: string | undefined
  postgres: string
  /** Where a person finds the operator's password. */
  operatorPassword: string
  logs: string
  demo: DemoAccount | undefined
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Command lines for bash and zsh; they need curl and sed only. */
export function curlLines(api: string, demo: DemoAccount) {
  const base = `${api}/api/v1`
  const json = `-H 'Content-Type: application/json'`
  const bearer = `-H "Authorization: Bearer $JWT"`
  const newKey = `$(uuidgen -r 2>/dev/null || node -p 'crypto.randomUUID()')`
  const credentials = quoted(JSON.stringify(demo))
  return {
    signIn: `JWT=$(curl -s ${base}/auth/login ${json} -d ${credentials} | sed -E 's/.*"cp_access_jwt":"([^"]+)".*/\\1/')`,
    start: `curl -s ${base}/relay/start ${bearer} -H "Idempotency-Key: ${newKey}" ${json} -d '{"connection_id":"demo"}'`,
    look: `curl -s ${base}/relay/active ${bearer}`,
    stop: `curl -s ${base}/relay/stop ${bearer} ${json} -d '{"connection_id":"demo","immediate":true}'`,
  }
}

export function readyText(stack: ReadyStack): string {
  const rows: Array<[string, string]> = [
    ['Site', stack.site],
    ['API', stack.api],
    ['API docs', `${stack.api}/docs`],
    ...(stack.temporalUi ? ([['Temporal UI', stack.temporalUi]] as Array<[string, string]>) : []),
    ['Metrics', `${stack.api}/metrics`],
    ['Postgres', stack.postgres],
    ...(stack.demo
      ? ([['Demo account', `${stack.demo.email}   ${stack.demo.password}`]] as Array<[string, string]>)
      : []),
    ['Operator', `user "operator", password: ${stack.operatorPassword}`],
    ['Logs', stack.logs],
  ]
  const lines = rows.map(([name, value]) => `  ${name.padEnd(14)}${value}`)
  if (stack.demo) {
    const { signIn, start, look, stop } = curlLines(stack.api, stack.demo)
    lines.push('', '  Sign in, start a relay, look at it (paste into a shell):', '', signIn, start, look)
    lines.push('', '  And stop it:', '', stop)
    lines.push('', '  A whole tour, in another terminal: npm run demo')
  }
  lines.push('', '  Give another account a plan: npm run grant -- EMAIL')
  return ['', ...lines, '', '  Ctrl-C stops everything.', ''].join('\n')
}
