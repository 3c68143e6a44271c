/** docker-compose.yml and the files beside it. No container engine runs here: what is checked is the text. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import type { ProgramName, VariableDescription } from '../../platform/config/variable.ts'
import { variables } from '../../platform/config/variables.ts'
import { temporaryFolder } from '../support/folders.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

interface Service {
  readonly image: string
  readonly environment?: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly networks?: readonly string[] | Readonly<Record<string, { readonly aliases: readonly string[] }>>
  readonly volumes?: readonly string[]
  readonly secrets?: readonly string[]
}

interface ComposeFile {
  readonly services: Readonly<Record<string, Service>>
  readonly networks: Readonly<Record<string, { readonly internal?: boolean } | null>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
}

const text = read('docker-compose.yml')
const compose = parse(text, { merge: true }) as ComposeFile
const override = parse(read('deploy/compose.own-proxy.yml')) as ComposeFile
const services = Object.entries(compose.services)

const servicesOf: Record<ProgramName, readonly string[]> = {
  api: ['api-1', 'api-2'],
  worker: ['worker'],
  site: ['site'],
}

const networksOf = ({ networks = [] }: Service): readonly string[] =>
  Array.isArray(networks) ? networks : Object.keys(networks)

test.each(['docker-compose.yml', 'deploy/compose.own-proxy.yml'])(
  '%s is valid by the Compose Specification',
  (file) => {
    const schema = JSON.parse(read('test/deploy/compose-spec.json')) as object
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    ajv.validate(schema, parse(read(file), { merge: true }))
    expect(ajv.errors ?? []).toEqual([])
  },
)

test('every variable of the configuration reaches the programs that read it', () => {
  const missing = Object.entries<VariableDescription>(variables).flatMap(([name, variable]) =>
    variable.readers
      .flatMap((reader) => servicesOf[reader])
      .filter((service) => {
        const environment = compose.services[service]?.environment ?? {}
        const isFixed = variable.compose && 'fixed' in variable.compose
        return !(name in environment || `${name}_FILE` in environment || isFixed)
      })
      .map((service) => `${service}: ${name}`),
  )
  expect(missing).toEqual([])
})

const secretNames = new Set(
  Object.entries<VariableDescription>(variables).flatMap(([name, { isSecret }]) => (isSecret ? [name] : [])),
)

test('the site and the edge get no secret', () => {
  for (const name of ['site', 'edge']) {
    expect(compose.services[name]?.secrets, name).toBeUndefined()
    const names = Object.keys(compose.services[name]?.environment ?? {})
    expect(names.filter((variable) => secretNames.has(variable.replace(/_FILE$/, '')))).toEqual([])
  }
})

/** Names and defaults of `${NAME:-default}` in the file; of a nested one, the outer default is left out. */
const interpolations = [...text.matchAll(/\$\{([A-Z_0-9]+):-([^${}]*)(\}|\$\{)/g)].map(([, name = '', value, end]) => ({
  name,
  value: end === '}' ? value : undefined,
}))

test('.env.example names exactly the variables that the file reads, with its defaults', () => {
  const shown = new Map(
    [...read('.env.example').matchAll(/^#?([A-Z_0-9]+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
  )
  expect([...shown.keys()].toSorted()).toEqual([...new Set(interpolations.map(({ name }) => name))].toSorted())
  expect(interpolations.filter(({ name, value }) => value && value !== shown.get(name))).toEqual([])
})

test('the edge alone is published to other machines', () => {
  const published = services.filter(([, { ports = [] }]) => ports.some((port) => !port.startsWith('127.0.0.1:')))
  expect(published.map(([name]) => name)).toEqual(['edge'])
  const ports = Object.values(override.services).flatMap(({ ports = [] }) => ports)
  expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([])
})

test('Postgres and Temporal are on a network without a way in or out, which site and edge are not on', () => {
  expect(compose.networks.internal?.internal).toBe(true)
  for (const name of ['postgres', 'temporal'])
    expect(networksOf(compose.services[name] as Service)).toEqual(['internal'])
  for (const name of ['site', 'edge']) expect(networksOf(compose.services[name] as Service)).toEqual(['edge'])
  expect(services.filter(([, service]) => networksOf(service).length === 0)).toEqual([])
})

test('the site, the worker and Prometheus reach both processes of the api under one name', () => {
  for (const name of ['api-1', 'api-2']) {
    const networks = compose.services[name]?.networks as Record<string, { aliases: string[] }>
    expect(networks).toEqual({ edge: { aliases: ['api'] }, internal: { aliases: ['api'] } })
  }
})

test('every image has an exact version', () => {
  const images = new Set(
    services.map(([, { image }]) => image).filter((image) => !image.startsWith('relay-control-plane:')),
  )
  expect([...images].filter((image) => !/:v?\d+\.\d+(\.\d+)?(-alpine)?$/.test(image))).toEqual([])
})

test('every mounted file and folder exists', () => {
  const paths = services.flatMap(([, { volumes = [] }]) => volumes.map((volume) => volume.split(':')[0] ?? ''))
  const missing = paths.filter((path) => path.startsWith('./') && !existsSync(join(root, path)))
  expect(missing).toEqual([])
})

test('make-secrets.sh creates every secret once, in a folder that is closed to other users', async () => {
  const folder = await temporaryFolder()
  mkdirSync(join(folder, 'secrets'))
  copyFileSync(join(root, 'deploy/make-secrets.sh'), join(folder, 'make-secrets.sh'))
  chmodSync(join(folder, 'make-secrets.sh'), 0o755)
  const secrets = () => {
    execFileSync(join(folder, 'make-secrets.sh'))
    const names = readdirSync(join(folder, 'secrets')).toSorted()
    return names.map((name) => [name, readFileSync(join(folder, 'secrets', name), 'utf8')] as const)
  }
  writeFileSync(join(folder, 'secrets/operator_password'), 'chosen by the operator\n')
  const created = secrets()
  expect(created.map(([name]) => `./deploy/secrets/${name}`)).toEqual(
    Object.values(compose.secrets)
      .map(({ file }) => file)
      .toSorted(),
  )
  expect(Object.keys(compose.secrets).toSorted()).toEqual(created.map(([name]) => name))
  expect(new Map(created).get('operator_password')).toBe('chosen by the operator\n')
  expect(new Set(created.map(([, value]) => value)).size).toBe(created.length)
  expect(secrets()).toEqual(created)
  expect(statSync(join(folder, 'secrets')).mode & 0o777).toBe(0o700)
})
