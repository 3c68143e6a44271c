/** Debian's Prometheus with the rules of the service, which scrapes programs of a test. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { atEnd } from './at-end.ts'
import { makeFolder, removeFolder } from './folders.ts'
import { findFreePort } from './ports.ts'
import { eventually } from './relays.ts'

const rules = fileURLToPath(new URL('../../deploy/prometheus/rules/*.yml', import.meta.url))

export interface Answer {
  /** The error of a query that Prometheus refuses; null after a success. */
  readonly error: string | null
  readonly series: readonly { readonly metric: Readonly<Record<string, string>>; readonly value: [number, string] }[]
}

export interface Rule {
  readonly name: string
  readonly query: string
  readonly health: 'ok' | 'unknown' | 'err'
  readonly lastError?: string
}

export interface Prometheus {
  query(expression: string): Promise<Answer>
  rules(): Promise<readonly Rule[]>
}

/** @param targets `host:port` of each job. It is ended after the tests of the file. */
export async function startPrometheus(targets: Readonly<Record<string, string>>): Promise<Prometheus> {
  const folder = await makeFolder()
  const jobs = Object.entries(targets).map(([job_name, target]) => ({
    job_name,
    static_configs: [{ targets: [target] }],
  }))
  // JSON is YAML, too.
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [rules],
    scrape_configs: jobs,
  }
  await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(config))
  const url = `http://127.0.0.1:${await findFreePort()}`
  const program = spawn(
    'prometheus',
    [
      `--config.file=${folder}/prometheus.yml`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=${url.replace('http://', '')}`,
      '--log.level=error',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let errors = ''
  program.stderr.on('data', (text) => {
    errors = (errors + text).slice(-10_000)
  })
  atEnd(async () => {
    program.kill('SIGKILL')
    if (program.exitCode === null && program.signalCode === null) await once(program, 'exit')
    await removeFolder(folder)
  })
  const isReady = () =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  await eventually(
    async () => program.exitCode === null && !(await isReady()),
    (isStarting) => !isStarting,
  )
  if (program.exitCode !== null) throw new Error(`Prometheus did not start:\n${errors}`)

  const read = async <Data>(path: string) =>
    (await (await fetch(`${url}/api/v1/${path}`)).json()) as { readonly data: Data; readonly error?: string }
  return {
    query: async (expression) => {
      const { data, error } = await read<{ result: Answer['series'] }>(`query?query=${encodeURIComponent(expression)}`)
      return error === undefined ? { error: null, series: data.result } : { error, series: [] }
    },
    rules: async () => {
      const { data } = await read<{ groups: readonly { rules: readonly Rule[] }[] }>('rules')
      return data.groups.flatMap((group) => group.rules)
    },
  }
}
