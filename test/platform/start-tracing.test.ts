/** Traces: nothing is loaded without an endpoint. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

/** The packages of OpenTelemetry that a process has loaded after it has decided on traces. */
async function loadedPackages(isEnabled: boolean): Promise<string[]> {
  const script = `
    import { createRequire } from 'node:module'
    await import('./api/start-api.ts')
    await import('./activities/worker/start-worker.ts')
    const { startTracing } = await import('./platform/start-tracing.ts')
    await startTracing({ tracing: { isEnabled: ${isEnabled} } }, 'test', { hold: (name, value) => value })
    const files = Object.keys(createRequire(import.meta.url).cache)
    const packages = files.map((file) => /node_modules\\/(@opentelemetry\\/sdk[^/]*|@temporalio\\/interceptors[^/]*)/.exec(file)?.[1])
    process.stdout.write(JSON.stringify([...new Set(packages)].filter((name) => name)))
    process.exit(0)`
  const args = ['--import', 'tsx', '--input-type=module', '--eval', script]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 })
  return JSON.parse(stdout)
}

test('without an endpoint nothing of OpenTelemetry is loaded', async () => {
  expect(await loadedPackages(false)).toEqual([])
})

test('with an endpoint its SDK and the interceptors of Temporal are loaded', async () => {
  expect(await loadedPackages(true)).toEqual(
    expect.arrayContaining(['@opentelemetry/sdk-trace-base', '@temporalio/interceptors-opentelemetry']),
  )
})
