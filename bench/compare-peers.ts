/** Measures the service against better-auth and DBOS (`npm run peers`, docs/performance.md). */
import { Command, InvalidArgumentError } from 'commander'
import { jsonOption } from './arguments.ts'
import { fillDatabase } from './data.ts'
import { measureLives } from './peer-lives.ts'
import { installPeers, type PeerBench } from './peer-servers.ts'
import { measureRefresh, measureSessionCheck } from './peer-sessions.ts'
import { type Row, writeRows } from './rows.ts'
import { startStack, waitUntilAnswering } from './stack.ts'
import { formatTable } from './table.ts'

const measurements = { session: measureSessionCheck, refresh: measureRefresh, life: measureLives }
type Measurement = keyof typeof measurements
const names = Object.keys(measurements) as Measurement[]

const command = new Command('npm run peers --')
  .description('Measures the service against better-auth and DBOS, and prints a table (docs/performance.md).')
  .argument('[measurements...]', `one or more of: ${names.join(', ')}; default: all`)
  .addOption(jsonOption)
  .option('--pairs <number>', 'pairs of peer and service per measurement', toPairs, 5)
  .parse()
const { json, pairs } = command.opts<{ json?: string; pairs: number }>()
const selected = names.filter((name) => command.args.length === 0 || command.args.includes(name))
const unknown = command.args.find((name) => !names.some((known) => known === name))
if (unknown !== undefined) command.error(`error: unknown measurement ${unknown}. Use one of: ${names.join(', ')}.`)

function toPairs(text: string): number {
  if (!/^[1-9]\d?$/.test(text)) throw new InvalidArgumentError('Use a whole number from 1 to 99.')
  return Number(text)
}

/** Longer than the run: sessions end only when they are stopped. */
const variables = {
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '3600',
  SVC_RELAY_STOP_GRACE_SECONDS: '3600',
  SVC_TEMPORAL_TASK_QUEUE: 'peers',
}

await installPeers()
const stack = await startStack()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void stack.life.stop().finally(() => process.exit(130)))
const rows: Row[] = []
try {
  const data = await fillDatabase(stack)
  const api = await stack.start('api/server.ts', variables)
  await stack.start('bench/fake-relay-worker.ts', variables)
  await waitUntilAnswering(api, '/health')
  const bench: PeerBench = { stack, api, data, rounds: pairs }
  for (const name of selected) rows.push(...(await measurements[name](bench)))
} finally {
  if (rows.length > 0) console.log(formatTable(rows))
  if (json !== undefined) await writeRows(json, rows)
  await stack.life.stop()
}
process.exit(0)
