/** deploy/prometheus/prometheus.yml, with the rules that it loads. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = async (path: string) => parse(await readFile(`${root}/${path}`, 'utf8'), { merge: true })

test('Prometheus accepts the configuration and loads every rule', async () => {
  const { stdout } = await promisify(execFile)('promtool', ['check', 'config', 'deploy/prometheus/prometheus.yml'], {
    cwd: root,
  })
  expect(stdout).toMatch(/SUCCESS: .*prometheus\.yml is valid/)
  expect(stdout).toMatch(/[1-9]\d* rule files found/)
})

test('every scraped name and port is one of docker-compose.yml', async () => {
  const { scrape_configs: jobs } = await read('deploy/prometheus/prometheus.yml')
  const { services } = await read('docker-compose.yml')
  const targets = jobs.flatMap(
    (job: { dns_sd_configs?: { names: string[]; port: number }[]; static_configs?: { targets: string[] }[] }) => [
      ...(job.dns_sd_configs ?? []).flatMap(({ names, port }) => names.map((name) => `${name}:${port}`)),
      ...(job.static_configs ?? []).flatMap(({ targets }) => targets),
    ],
  )
  const portOf = (address: string) => address.split(':').at(-1)
  expect(targets).toEqual([
    `${services['api-1'].networks.internal.aliases[0]}:${services['api-1'].environment.PORT}`,
    `worker:${portOf(services.worker.environment.SVC_WORKER_METRICS_ADDRESS)}`,
    `temporal:${portOf(services.temporal.environment.PROMETHEUS_ENDPOINT)}`,
  ])
})
