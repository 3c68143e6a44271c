/**
 * Runs the tests and prints what they cost: the wall time and the CPU time of each file, and the CPU time of each kind
 * of process.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatCells } from '../../bench/table.ts'
import type { FileCost } from './file-cost.ts'
import { watchProcesses } from './process-kinds.ts'

const [filesShown = '30', ...vitestArguments] = process.argv.slice(2)
const folder = await mkdtemp(join(tmpdir(), 'test-costs-'))
const costsFile = join(folder, 'files.jsonl')
const startedAt = performance.now()
const child = spawn('npx', ['vitest', 'run', ...vitestArguments], {
  stdio: 'inherit',
  env: { ...process.env, TEST_COSTS_FILE: costsFile },
})
const watch = watchProcesses(process.pid)
const [code] = (await once(child, 'exit')) as [number | null]
const kinds = watch.end()
const seconds = (performance.now() - startedAt) / 1000
const files = (await readFile(costsFile, 'utf8'))
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as FileCost)
await rm(folder, { recursive: true })

const print = (text: string) => void process.stdout.write(`${text}\n`)
const rounded = (value: number) => value.toFixed(1)
const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)
const total = sumOf(kinds.map(({ cpu }) => cpu))
print(
  `\n${rounded(seconds)} s, ${rounded(total)} s of CPU, ${rounded(sumOf(files.map((cost) => cost.seconds)))} s over all files\n`,
)
print(
  formatCells([
    ['processes', 'number', 'CPU s'],
    ...kinds.map(({ kind, count, cpu }) => [kind, String(count), rounded(cpu)]),
  ]),
)
print(
  `\n${formatCells([
    ['file', 'wall s', 'CPU s', 'CPU s of its programs'],
    ...files
      .toSorted((a, b) => b.seconds - a.seconds)
      .slice(0, Number(filesShown))
      .map((cost) => [cost.file, rounded(cost.seconds), rounded(cost.cpu), rounded(cost.programsCpu)]),
  ])}`,
)
process.exit(code ?? 1)
