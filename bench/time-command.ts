/**
 * Measures how long a command takes, and puts the row into a JSON file that other commands share:
 * `node --import tsx bench/time-command.ts --name suite_test --minutes 6 --json docs/proof/suite.json npm test`
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { Command } from 'commander'
import { jsonOption } from './arguments.ts'
import { failed, type Row, single, writeRows } from './rows.ts'

const options = new Command('npm run time --')
  .description('Measures how long a command takes. Exits with the code of the command.')
  .argument('<command...>')
  .requiredOption('--name <name>', 'the name of the row; a row of the same name is replaced')
  .option('--minutes <number>', 'the target: at most so many minutes', Number)
  .addOption(jsonOption)
  .passThroughOptions()
  .parse()
const [executable = '', ...args] = options.args
const { name, minutes, json } = options.opts<{ name: string; minutes?: number; json?: string }>()

const startedAt = performance.now()
const child = spawn(executable, args, { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
const [code] = (await once(child, 'exit')) as [number | null]
const what = `time of \`${[executable, ...args].join(' ')}\``
const target = minutes === undefined ? {} : ({ target: minutes, bound: 'at_most' } as const)
const figure = { name, what, unit: 'min', ...target }
const taken = (performance.now() - startedAt) / 60_000
const row = code === 0 ? single(figure, taken) : failed(figure, `ended with code ${code} after ${taken.toFixed(1)} min`)
console.error(`[time] ${what}: ${taken.toFixed(2)} min${code === 0 ? '' : `, exit code ${code}`}`)
if (json !== undefined) {
  const text = await readFile(json, 'utf8').catch(() => '[]')
  await writeRows(json, [...(JSON.parse(text) as Row[]).filter((other) => other.name !== name), row])
}
process.exit(code ?? 1)
