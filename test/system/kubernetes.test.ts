/** The manifests of deploy/kubernetes, rendered as `kubectl apply -k` renders them. No cluster runs here. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { readConfig, readWorkerConfig } from '../../platform/config/config.ts'
import { readSiteConfig } from '../../platform/config/site.ts'
import { Variables } from '../../platform/config/variables.ts'
import { temporaryFolder } from '../support/folders.ts'
import { copyManifests, type KubernetesObject, parseObjects, renderOverlay } from '../support/kustomize.ts'

let text = ''
let objects: readonly KubernetesObject[] = []
beforeAll(async () => {
  text = await renderOverlay('production')
  objects = parseObjects(text)
})

const ofKind = (...kinds: string[]) => objects.filter(({ kind }) => kinds.includes(kind))
const programs = () => ofKind('Deployment', 'Job')
const podOf = (program: KubernetesObject) => program.spec.template.spec
const labelsOf = (program: KubernetesObject): Record<string, string> => program.spec.template.metadata.labels
const containerOf = (program: KubernetesObject) => podOf(program).containers[0]
const nameOf = (program: KubernetesObject): string => labelsOf(program)['app.kubernetes.io/name'] ?? ''

interface Selector {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly { readonly key: string; readonly values: readonly string[] }[]
}

/** The programs whose pods a selector matches. */
const selected = ({ matchLabels = {}, matchExpressions = [] }: Selector) =>
  programs().filter((program) => {
    const labels = labelsOf(program)
    return (
      Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
      matchExpressions.every(({ key, values }) => values.includes(labels[key] ?? ''))
    )
  })

/** The variables of a container, from its own list and the ConfigMaps that it names. */
function variablesOf(program: KubernetesObject): Record<string, string> {
  const { env = [], envFrom = [] } = containerOf(program)
  const names: string[] = envFrom.map((source: { configMapRef: { name: string } }) => source.configMapRef.name)
  const maps = names.map((name) => ofKind('ConfigMap').find(({ metadata }) => metadata.name === name)?.data)
  expect(maps).not.toContain(undefined)
  const own = env.map(({ name, value }: { name: string; value: string }) => [name, value])
  return Object.assign({}, ...maps, Object.fromEntries(own))
}

/** The keys of the secret that a program mounts, by path. */
const secretKeysOf = (program: KubernetesObject): string[] =>
  podOf(program)
    .volumes.flatMap((volume: { secret?: { items: { key: string }[] } }) => volume.secret?.items ?? [])
    .map(({ key }: { key: string }) => key)

test('every object is valid by the schemas of Kubernetes, without unknown keys', async () => {
  const file = join(await temporaryFolder(), 'objects.yaml')
  await writeFile(file, text)
  const { stdout, stderr } = await promisify(execFile)('kubernetes-validate', ['--strict', '-k', '1.33', file])
  const passed = [...`${stdout}${stderr}`.matchAll(/passed for resource (\S+)/g)].map(([, name]) => name)
  const builtIn = objects.filter(({ apiVersion }) => !apiVersion.startsWith('monitoring.coreos.com/'))
  expect(passed.toSorted()).toEqual(
    builtIn.map(({ kind, metadata }) => `${kind.toLowerCase()}/${metadata.name}`).toSorted(),
  )
})

test('a misspelled key is found by the validation', async () => {
  const file = join(await temporaryFolder(), 'objects.yaml')
  await writeFile(file, text.replace('readOnlyRootFilesystem:', 'readOnlyFileSystem:'))
  const run = promisify(execFile)('kubernetes-validate', ['--strict', '-k', '1.33', file])
  await expect(run).rejects.toMatchObject({ stdout: expect.stringContaining('readOnlyFileSystem') })
})

describe('the variables of', () => {
  const readers = { api: readConfig, worker: readWorkerConfig, site: readSiteConfig }
  const secretValues: Readonly<Record<string, string>> = {
    database_url: 'postgres://svc:password@postgres.postgres:5432/svc',
    oauth_encryption_key: randomBytes(32).toString('base64'),
    billing_webhook_secret: `whsec_${randomBytes(32).toString('base64')}`,
    smtp_url: 'smtps://user:password@smtp.example.com',
    stripe_api_key: 'sk_live_0123456789',
  }

  test.each(['api', 'worker', 'site'] as const)('the %s are a valid configuration', async (name) => {
    const program = programs().find((candidate) => nameOf(candidate) === name)
    if (!program) throw new Error(`${name} is missing`)
    const secrets = await temporaryFolder()
    for (const key of secretKeysOf(program))
      await writeFile(
        join(secrets, key),
        secretValues[key] ?? `a secret of 32 bytes or more: ${key}`.replaceAll(' ', '-'),
      )
    const variables = Object.entries(variablesOf(program)).map(([variable, value]) => [
      variable,
      value.replace('/run/secrets', secrets),
    ])
    expect(() => readers[name](Object.fromEntries(variables))).not.toThrow()
  })

  test('all programs are read by them, and those of secrets name mounted files', () => {
    const known = new Set(['HOME', ...Object.keys(Variables.shape).flatMap((name) => [name, `${name}_FILE`])])
    for (const program of programs()) {
      const variables = variablesOf(program)
      expect(Object.keys(variables).filter((name) => !known.has(name))).toEqual([])
      const files = Object.keys(variables).filter(
        (name) => name.endsWith('_FILE') && variables[name]?.startsWith('/run/'),
      )
      const keys = files.map((name) => variables[name]?.replace('/run/secrets/', ''))
      expect(keys.toSorted()).toEqual(secretKeysOf(program).toSorted())
    }
  })

  test('the site name no secret', () => {
    expect(
      programs()
        .filter((program) => secretKeysOf(program).length > 0)
        .map(nameOf)
        .toSorted(),
    ).toEqual(['api', 'migrate', 'worker'])
  })
})

test('docs/kubernetes.md lists every key of the secret', async () => {
  const page = await readFile(fileURLToPath(new URL('../../docs/kubernetes.md', import.meta.url)), 'utf8')
  const listed = [...page.matchAll(/^ *\| `([a-z_]+)` \|/gm)].map(([, key]) => key)
  expect([...new Set(programs().flatMap(secretKeysOf))].toSorted()).toEqual(listed.toSorted())
})

describe('references between objects:', () => {
  test('the selectors of deployments, services, budgets, policies and monitors match pods', () => {
    for (const { kind, metadata, spec } of ofKind('Deployment', 'PodDisruptionBudget', 'ServiceMonitor', 'PodMonitor'))
      expect(selected(spec.selector).map(nameOf), kind).toEqual([metadata.name])
    for (const { metadata, spec } of ofKind('Service'))
      expect(selected({ matchLabels: spec.selector }).map(nameOf)).toEqual([metadata.name])
    for (const { metadata, spec } of ofKind('NetworkPolicy'))
      expect(selected(spec.podSelector), metadata.name).not.toEqual([])
  })

  test('ports that are named exist in the pods', () => {
    const portsOf = (program: KubernetesObject) =>
      (containerOf(program).ports ?? []).map(({ name }: { name: string }) => name)
    for (const { spec } of ofKind('Service'))
      for (const program of selected({ matchLabels: spec.selector }))
        expect(portsOf(program)).toContain(spec.ports[0].targetPort)
    for (const { spec } of ofKind('NetworkPolicy'))
      for (const { ports = [] } of spec.ingress ?? [])
        for (const { port } of ports)
          for (const program of selected(spec.podSelector)) expect(portsOf(program)).toContain(port)
    for (const { spec } of ofKind('PodMonitor', 'ServiceMonitor'))
      for (const { port } of spec.endpoints ?? spec.podMetricsEndpoints)
        expect(portsOf(selected(spec.selector)[0] as KubernetesObject)).toContain(port)
  })

  test('autoscalers name deployments, which leave the number of replicas to them', () => {
    for (const { spec } of ofKind('HorizontalPodAutoscaler')) {
      const target = ofKind(spec.scaleTargetRef.kind).find(({ metadata }) => metadata.name === spec.scaleTargetRef.name)
      expect(target?.spec.replicas).toBeUndefined()
      expect(spec.minReplicas).toBeGreaterThanOrEqual(2)
    }
  })

  test('ingresses route to services, and publish neither metrics nor health checks of the api', () => {
    const services = new Map(ofKind('Service').map(({ metadata, spec }) => [metadata.name, spec.ports[0].name]))
    const routes = ofKind('Ingress').flatMap(({ spec }) =>
      spec.rules.flatMap(({ host, http }: { host: string; http: { paths: Route[] } }) =>
        http.paths.map(({ path, backend }) => ({ host, path, backend: backend.service })),
      ),
    )
    for (const { backend } of routes) expect(services.get(backend.name)).toBe(backend.port.name)
    const ofApi = routes.filter(({ host }) => host.startsWith('api.'))
    expect(ofApi.map(({ path }) => path).toSorted()).toEqual(['/api/v1', '/api/v1/admin', '/oauth', '/relay-node'])
  })
})

interface Route {
  readonly path: string
  readonly backend: { readonly service: { readonly name: string; readonly port: { readonly name: string } } }
}

test('the hosts of the ingresses are those of the public URLs', () => {
  const hosts = new Set(ofKind('Ingress').flatMap(({ spec }) => spec.rules.map(({ host }: { host: string }) => host)))
  const variables = variablesOf(programs().find((program) => nameOf(program) === 'api') as KubernetesObject)
  const urls = ['SVC_API_URL', 'SVC_SITE_URL'].map((name) => new URL(variables[name] ?? '').host)
  expect([...hosts].toSorted()).toEqual(urls.toSorted())
})

test('every container runs as another user than root, on a read-only file system and without capabilities', () => {
  for (const program of programs()) {
    const { securityContext, automountServiceAccountToken } = podOf(program)
    expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    expect(automountServiceAccountToken).toBe(false)
    expect(containerOf(program).securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    expect(containerOf(program).resources).toMatchObject({ requests: { memory: expect.anything() }, limits: {} })
  }
})

test('every program that serves has all probes, and time for its drain before it is killed', () => {
  for (const program of ofKind('Deployment')) {
    expect(containerOf(program)).toMatchObject({ startupProbe: {}, livenessProbe: {}, readinessProbe: {} })
    // 10 s each for open requests or activities, and for connections.
    const endSeconds = Number(variablesOf(program).SVC_DRAIN_SECONDS) + 20
    expect(podOf(program).terminationGracePeriodSeconds).toBeGreaterThanOrEqual(endSeconds)
  }
})

test('each pod that a policy selects is denied everything else, in both directions', () => {
  const policies = ofKind('NetworkPolicy').map(({ metadata, spec }) => ({ name: metadata.name, ...spec }))
  expect(policies.find(({ name }) => name === 'default-deny')).toEqual({
    name: 'default-deny',
    podSelector: {},
    policyTypes: ['Ingress', 'Egress'],
  })
  const reaches = (to: string) =>
    selected(policies.find(({ name }) => name === to)?.podSelector)
      .map(nameOf)
      .toSorted()
  expect(reaches('postgres')).toEqual(['api', 'migrate', 'worker'])
  expect(reaches('temporal')).toEqual(['api', 'worker'])
  expect(reaches('internet')).toEqual(['api', 'worker'])
})

test('the rules are those that Prometheus has under compose', async () => {
  const folder = fileURLToPath(new URL('../../deploy/prometheus/rules/', import.meta.url))
  const names = (await readdir(folder)).filter((name) => name.endsWith('.yml'))
  const files = await Promise.all(
    names.map(async (name) => [name.slice(0, -'.yml'.length), parse(await readFile(join(folder, name), 'utf8'))]),
  )
  const rules = ofKind('PrometheusRule').map(({ metadata, spec }) => [metadata.name, spec])
  expect(Object.fromEntries(rules), 'run npm run generate').toEqual(Object.fromEntries(files))
})

test('the workers of another version run beside the others, with their configuration and under the same policies', async () => {
  const folder = join(await temporaryFolder(), 'kubernetes')
  await copyManifests(folder)
  const file = join(folder, 'overlays/production/kustomization.yaml')
  await writeFile(
    file,
    (await readFile(file, 'utf8')).replace('  - ingress.yaml', '  - ingress.yaml\n  - worker-version'),
  )
  objects = parseObjects(await renderOverlay('production', folder))
  onTestFinished(() => {
    objects = parseObjects(text)
  })
  const [worker, version] = ['worker', 'worker-0-2-0'].map((name) =>
    ofKind('Deployment').find(({ metadata }) => metadata.name === name),
  )
  if (!worker || !version) throw new Error('a deployment is missing')
  expect(selected(worker.spec.selector)).toEqual([worker])
  expect(selected(version.spec.selector)).toEqual([version])
  expect(variablesOf(version)).toEqual({ ...variablesOf(worker), SVC_WORKER_BUILD_ID: '0.2.0' })
  expect(secretKeysOf(version)).toEqual(secretKeysOf(worker))
  expect(containerOf(version).image).toBe('registry.example.com/relay-control-plane:0.2.0')
  const policies = ofKind('NetworkPolicy').map(({ spec }) => selected(spec.podSelector))
  for (const matched of policies) expect(matched.includes(version)).toBe(matched.includes(worker))
  // An eviction that two budgets have to allow is refused always.
  const budgets = ofKind('PodDisruptionBudget').map(({ spec }) => ({ ...spec, selected: selected(spec.selector) }))
  for (const deployment of [worker, version]) {
    const [budget, ...others] = budgets.filter((candidate) => candidate.selected.includes(deployment))
    expect(budget).toMatchObject({ minAvailable: 1, selected: [deployment] })
    expect(others).toEqual([])
  }
})

test('a release with another image gets a migration job of its own', async () => {
  const folder = join(await temporaryFolder(), 'kubernetes')
  await copyManifests(folder)
  const file = join(folder, 'overlays/production/kustomization.yaml')
  await writeFile(file, (await readFile(file, 'utf8')).replace('newTag: 0.2.0', 'newTag: 0.3.0'))
  const next = parseObjects(await renderOverlay('production', folder))
  const jobOf = (all: readonly KubernetesObject[]) => all.find(({ kind }) => kind === 'Job')?.metadata.name
  expect(jobOf(objects)).toMatch(/^migrate-\w{10}$/)
  expect(jobOf(next)).toMatch(/^migrate-\w{10}$/)
  expect(jobOf(next)).not.toBe(jobOf(objects))
})
