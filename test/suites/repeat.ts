/**
 * `npm run test:repeat -- --files 20 --times 5`: runs the slowest test files, each alone and several times in a row,
 * and fails when one run fails. Alone on a quiet machine a file is as fast as it can be, which breaks other tests than
 * a busy machine does.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { slowFiles } from '../support/slow-files.ts'
import { listTestFiles } from './quick-files.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { files: { type: 'string', default: '20' }, times: { type: 'string', default: '5' } },
})
const own = new Set(listTestFiles())
const files =
  positionals.length > 0 ? positionals : slowFiles.filter((file) => own.has(file)).slice(0, Number(values.files))

const print = (text: string) => void process.stdout.write(`${text}\n`)

async function runOnce(file: string): Promise<{ passed: boolean; seconds: number }> {
  const startedAt = performance.now()
  const child = spawn('npx', ['vitest', 'run', '--reporter=dot', file], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text) => {
      output += text
    })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) print(output)
  return { passed: code === 0, seconds: (performance.now() - startedAt) / 1000 }
}

let failed = 0
let passed = 0
for (const file of files) {
  const runs: { passed: boolean; seconds: number }[] = []
  for (let run = 0; run < Number(values.times); run += 1) runs.push(await runOnce(file))
  const failures = runs.filter((run) => !run.passed).length
  failed += failures
  passed += runs.length - failures
  print(`${failures === 0 ? 'ok  ' : 'FAIL'} ${file}: ${runs.map(({ seconds }) => seconds.toFixed(1)).join(' ')} s`)
}
print(`\n${passed} runs passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
