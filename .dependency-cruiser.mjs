/**
 * Which folder may import which, checked by `npm run check:imports`. A test compares the map in docs/architecture.md
 * with the imports that exist.
 */

/** The part of `workflows/` that other folders use to start, signal and query workflows. */
const workflowInterface = '^workflows/(messages|search-attributes|[^/]+-client)\\.ts$'
const workflowClients = '^workflows/[^/]+-client\\.ts$'

/** Per folder: the paths outside it that its files may import. `test` and `bench` may import everything. */
const allowedImports = {
  domain: [],
  platform: [],
  // The variables of the service name what its rules know, such as engines and addresses.
  'platform/config': ['^platform/', '^domain/'],
  db: ['^domain/', '^platform/'],
  providers: ['^domain/', '^platform/'],
  workflows: ['^domain/'],
  activities: ['^domain/', '^platform/', '^db/', '^providers/', workflowInterface],
  api: ['^domain/', '^platform/', '^db/', '^providers/', workflowInterface],
  client: [],
  web: ['^domain/', '^platform/', '^client/'],
  // `npm start` ends the relays that ran on its machine.
  cli: ['^domain/', '^platform/', '^client/', '^providers/relay/local-relays\\.ts$'],
  // The doctor reads what the service reads, since it also runs while the service does not (docs/decisions/0033).
  'cli/doctor': [
    '^cli/',
    '^client/',
    '^domain/',
    '^platform/',
    '^db/',
    '^providers/',
    '^activities/fleet/(fleet-names|provider-checks|relay-providers)\\.ts$',
  ],
  // Commands that compare what the service stores with its providers, also while the API does not run
  // (docs/decisions/0032).
  'cli/direct': [
    '^cli/',
    '^domain/',
    '^platform/',
    '^db/',
    '^providers/',
    '^activities/(billing/reconciliation|fleet/(fleet-names|orphan-sweep|provider-checks|relay-providers))\\.ts$',
  ],
  'relay-node': ['^domain/(relay/|uuid\\.ts)', '^platform/'],
}

/**
 * Imports of types only that are allowed besides, since they leave nothing behind in a program or a workflow bundle.
 */
const allowedTypeImports = {
  workflows: ['^activities/'],
}

/**
 * Within `api/`: which other files of `api/` each folder may import, and each file that folders import. Only what
 * stands above, so that no two import each other. Files that are not listed put the service together; no folder imports
 * them.
 */
const allowedImportsInApi = {
  'http/': [],
  'views/': ['http/'],
  'deliveries.ts': [],
  'billing-event-recorder.ts': [],
  'relay-session-tokens.ts': [],
  'metrics/': [],
  'identity/': ['http/', 'deliveries.ts'],
  'slates/': ['http/', 'identity/'],
  'apps/': ['http/', 'identity/'],
  'live/': ['http/', 'views/', 'identity/', 'apps/'],
  'services.ts': ['views/', 'billing-event-recorder.ts', 'metrics/', 'identity/', 'slates/', 'apps/', 'live/'],
  'admission/': ['http/', 'identity/', 'apps/', 'live/', 'services.ts'],
  'routes/': [
    'http/',
    'views/',
    'relay-session-tokens.ts',
    'identity/',
    'slates/',
    'apps/',
    'services.ts',
    'admission/',
  ],
  'openapi/': ['http/', 'views/', 'identity/', 'admission/', 'routes/'],
}

export const folders = [...Object.keys(allowedImports).filter((folder) => !folder.includes('/')), 'bench', 'test']
const allFolders = `^(${folders.join('|')})/`

/**
 * The node of the map in docs/architecture.md that a file belongs to.
 * @param {string} path
 */
export const nodeOf = (path) =>
  new RegExp(workflowInterface).test(path)
    ? 'messages'
    : /^cli\/(direct|doctor)\//.test(path)
      ? 'doctor'
      : folders.find((folder) => path.startsWith(`${folder}/`))

/**
 * Whether files of a folder may import only the types of another.
 * @param {string} from
 * @param {string} to
 */
export const isTypesOnly = (from, to) => allowedTypeImports[from]?.includes(`^${to}/`) ?? false

const folderRules = Object.entries(allowedImports).flatMap(([folder, allowed]) => {
  const own = `^${folder}/`
  const types = allowedTypeImports[folder] ?? []
  const inner = Object.keys(allowedImports).filter((other) => other.startsWith(`${folder}/`))
  const from = { path: own, ...(inner.length > 0 ? { pathNot: inner.map((other) => `^${other}/`) } : {}) }
  const rule = (name, comment, to) => ({ name, comment, severity: 'error', from, to })
  return [
    rule(`${folder.replace('/', '-')}-imports`, `${folder}/ must not import this file`, {
      path: allFolders,
      pathNot: [own, ...allowed, ...types],
    }),
    ...types.map((path) =>
      rule(`${folder}-imports-types`, `${folder}/ may import only types of this file`, {
        path,
        dependencyTypesNot: ['type-only'],
      }),
    ),
  ]
})

/** The ground floor of `db/` is its own files; each folder beside `transactions/` has the queries of one noun. */
const queryFolder = '^db/(?!transactions/)([^/]+)/'
const groundFloor = '^db/[^/]+$'

const apiRules = Object.entries(allowedImportsInApi).map(([from, allowed], index, all) => {
  const above = all.slice(0, index).map(([path]) => path)
  return {
    name: `api-${from.replace(/\/$|\.ts$/, '')}-imports`,
    comment: `api/${from} must not import this file`,
    severity: 'error',
    from: { path: `^api/${from}` },
    to: {
      path: '^api/',
      pathNot: [from, ...allowed.filter((path) => above.includes(path))].map((path) => `^api/${path}`),
    },
  }
})

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...folderRules,
    ...apiRules,
    {
      name: 'api-folder-has-rule',
      comment: 'name the folder in allowedImportsInApi',
      severity: 'error',
      from: { path: '^api/[^/]+/', pathNot: Object.keys(allowedImportsInApi).map((path) => `^api/${path}`) },
      to: {},
    },
    {
      name: 'db-queries',
      comment: 'queries of one noun import no other noun: what needs two is a transaction in db/transactions/',
      severity: 'error',
      from: { path: queryFolder },
      to: { path: '^db/', pathNot: [groundFloor, '^db/$1/'] },
    },
    {
      name: 'db-ground-floor',
      comment: 'the ground floor of db/ is below the queries of all nouns',
      severity: 'error',
      from: { path: groundFloor },
      to: { path: '^db/', pathNot: [groundFloor] },
    },
    {
      name: 'no-cycles',
      comment: 'files must not import each other in a cycle, not even for types',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'domain-is-pure',
      comment: 'domain/ imports nothing: no package and no module of Node',
      severity: 'error',
      from: { path: '^domain/' },
      to: { pathNot: '^domain/' },
    },
    {
      name: 'workflow-bundle',
      comment:
        'a workflow bundle contains workflows, the domain and two packages of the Temporal SDK, and no Temporal client',
      severity: 'error',
      from: { path: '^workflows/', pathNot: workflowClients },
      to: {
        pathNot: ['^workflows/(?![^/]+-client\\.ts$)', '^domain/', '^node_modules/@temporalio/(workflow|common)/'],
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'workflow-clients',
      comment: 'the clients of workflows need no package but the Temporal SDK',
      severity: 'error',
      from: { path: workflowClients },
      to: { path: '.', pathNot: ['^(workflows|domain)/', '^node_modules/@temporalio/(workflow|common|client)/'] },
    },
    {
      name: 'svc-starts-quickly',
      comment: 'svc imports the database and the providers only when a command needs them: use import()',
      severity: 'error',
      from: { path: '^cli/(?!direct/|doctor/(?!command\\.ts$))' },
      to: { path: '^cli/(direct/|doctor/(?!command\\.ts$))', dynamic: false },
    },
    {
      name: 'declared-dependency',
      comment: 'the package is not in package.json',
      severity: 'error',
      from: {},
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'no-development-dependency',
      comment: 'the image contains only `dependencies`: move the package there',
      severity: 'error',
      from: { path: allFolders, pathNot: '^(test|bench)/' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only', 'npm'] },
    },
    {
      name: 'resolvable',
      comment: 'the file or package does not exist',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: '^node_modules/' },
    // bench/peers is a package of its own.
    exclude: { path: '(^|/)(dist|coverage)/|^bench/peers/' },
    // client/ has a package.json too, for those who install it; its packages are those of the project.
    combinedDependencies: true,
    // Sees `import type`, through the JavaScript version of TypeScript.
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}
