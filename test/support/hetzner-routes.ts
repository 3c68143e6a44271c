/** The routes of the double of the Hetzner Cloud API. */
import {
  type CreateRequest,
  type HetznerProject,
  images,
  type Labels,
  locations,
  matchesSelector,
  presentAction,
  presentServer,
  type StoredAddress,
  type StoredServer,
  serverTypes,
  sshKeys,
} from './hetzner-project.ts'

export interface Reply {
  readonly status: number
  readonly body: object | string
  readonly headers?: Readonly<Record<string, string>>
}

interface Request {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly body: string
}

const ok = (body: object): Reply => ({ status: 200, body })

export const refusal = (status: number, code: string, message: string, details: object | null = null): Reply => ({
  status,
  body: { error: { code, message, details } },
})

const notFound = (what: string): Reply => refusal(404, 'not_found', `${what} not found`)

const invalidField = (field: string, message: string): Reply =>
  refusal(422, 'invalid_input', `invalid input in field '${field}': ${message}`, {
    fields: [{ name: field, messages: [message] }],
  })

export function answerRequest(project: HetznerProject, request: Request): Reply {
  const { method, path, query } = request
  const [, collection = '', id, below] = path.split('/')
  const route = `${method} /${[collection, id && ':id', below].filter(Boolean).join('/')}`
  switch (route) {
    case 'POST /servers':
      return createServer(project, request.body)
    case 'GET /servers':
      return listServers(project, query)
    case 'GET /servers/:id':
      return withServer(project, id, (server) => ok({ server: presentServer(server) }))
    case 'PUT /servers/:id':
      return withServer(project, id, (server) => updateServer(server, request.body))
    case 'DELETE /servers/:id':
      return withServer(project, id, (server) =>
        presentServer(server).locked
          ? refusal(423, 'locked', 'server is locked')
          : ok({ action: presentAction(project.delete(server)) }),
      )
    case 'GET /primary_ips':
      return listAddresses(project, query)
    case 'GET /primary_ips/:id':
    case 'PUT /primary_ips/:id':
    case 'DELETE /primary_ips/:id':
      return answerAddress(project, Number(id), request)
    case 'GET /servers/:id/actions':
      return withServer(project, id, (server) =>
        page('actions', project.actions(({ serverId }) => serverId === server.id).map(presentAction), query),
      )
    case 'GET /actions': {
      const ids = query.getAll('id').map(Number)
      if (ids.length === 0) return invalidField('id', 'is required')
      return page('actions', project.actions((action) => ids.includes(action.id)).map(presentAction), query)
    }
    case 'GET /actions/:id': {
      const [action] = project.actions((candidate) => candidate.id === Number(id))
      return action ? ok({ action: presentAction(action) }) : notFound('action')
    }
    default:
      return method === 'GET' ? readCatalogue(collection, id, query) : notFound('endpoint')
  }
}

function withServer(
  project: HetznerProject,
  id: string | undefined,
  answer: (server: NonNullable<ReturnType<HetznerProject['find']>>) => Reply,
): Reply {
  const server = project.find(Number(id))
  return server ? answer(server) : notFound('server')
}

const catalogue: Readonly<Record<string, { singular: string; all: readonly { id: number; name: string | null }[] }>> = {
  server_types: { singular: 'server_type', all: serverTypes },
  locations: { singular: 'location', all: locations },
  images: { singular: 'image', all: images },
  ssh_keys: { singular: 'ssh_key', all: sshKeys },
}

function readCatalogue(collection: string, id: string | undefined, query: URLSearchParams): Reply {
  const entry = catalogue[collection]
  if (!entry) return notFound('endpoint')
  if (id !== undefined) {
    const found = entry.all.find((item) => item.id === Number(id))
    return found ? ok({ [entry.singular]: found }) : notFound(entry.singular)
  }
  const architectures = query.getAll('architecture')
  const matching = entry.all.filter(
    (item) =>
      (query.get('name') ?? item.name) === item.name &&
      (architectures.length === 0 || !('architecture' in item) || architectures.includes(String(item.architecture))),
  )
  return page(collection, matching, query)
}

function listServers(project: HetznerProject, query: URLSearchParams): Reply {
  const selector = query.get('label_selector')
  const matching = project
    .listed()
    .filter(({ name }) => (query.get('name') ?? name) === name)
    .filter(({ labels }) => selector === null || matchesSelector(labels, selector))
  return page('servers', matching.map(presentServer), query)
}

const isAssigned = (project: HetznerProject, { serverId }: StoredAddress) => project.find(serverId) !== undefined

const presentAddress = (project: HetznerProject, address: StoredAddress) => ({
  id: address.id,
  name: `primary_ip-${address.id}`,
  type: 'ipv4',
  ip: address.ip,
  labels: address.labels,
  auto_delete: address.autoDelete,
  assignee_type: 'server',
  assignee_id: isAssigned(project, address) ? address.serverId : null,
  blocked: false,
})

function listAddresses(project: HetznerProject, query: URLSearchParams): Reply {
  const selector = query.get('label_selector') ?? ''
  const matching = project.addresses().filter(({ labels }) => selector === '' || matchesSelector(labels, selector))
  const presented = matching.map((address) => presentAddress(project, address))
  return page('primary_ips', presented, query)
}

function answerAddress(project: HetznerProject, id: number, { method, body }: Request): Reply {
  const address = project.addresses().find((candidate) => candidate.id === id)
  if (!address) return notFound('primary_ip')
  if (method === 'DELETE') {
    if (isAssigned(project, address)) return refusal(422, 'must_be_unassigned', 'primary IP is assigned')
    project.deleteAddress(address)
    return { status: 204, body: '' }
  }
  if (method === 'PUT') {
    const changes = JSON.parse(body) as { labels?: Labels; auto_delete?: boolean }
    if (findWrongLabel(changes.labels ?? {})) return invalidField('labels', 'has an invalid value')
    address.labels = changes.labels ?? address.labels
    address.autoDelete = changes.auto_delete ?? address.autoDelete
  }
  return ok({ primary_ip: presentAddress(project, address) })
}

/** One page of a list, with the data about the others. */
function page(key: string, all: readonly object[], query: URLSearchParams): Reply {
  const number = Number(query.get('page') ?? 1)
  const perPage = Number(query.get('per_page') ?? 25)
  if (!(perPage >= 1 && perPage <= 50)) return invalidField('per_page', 'must be between 1 and 50')
  const lastPage = Math.max(1, Math.ceil(all.length / perPage))
  return ok({
    [key]: all.slice((number - 1) * perPage, number * perPage),
    meta: {
      pagination: {
        page: number,
        per_page: perPage,
        previous_page: number > 1 ? number - 1 : null,
        next_page: number < lastPage ? number + 1 : null,
        last_page: lastPage,
        total_entries: all.length,
      },
    },
  })
}

/** Labels in the body replace all labels of the server. */
function updateServer(server: StoredServer, body: string): Reply {
  const { labels = server.labels } = JSON.parse(body) as { labels?: Labels }
  if (findWrongLabel(labels)) return invalidField('labels', 'has an invalid value')
  server.labels = labels
  return ok({ server: presentServer(server) })
}

const byNameOrId = <Item extends { id: number; name: string | null }>(all: readonly Item[], text: string) =>
  all.filter(({ id, name }) => name === text || String(id) === text)

const isLabelValue = (value: string) => value === '' || /^[a-z0-9A-Z]([-_.a-z0-9A-Z]{0,61}[a-z0-9A-Z])?$/.test(value)

const findWrongLabel = (labels: Labels) => Object.entries(labels).find(([, value]) => !isLabelValue(value))

function createServer(project: HetznerProject, body: string): Reply {
  let request: CreateRequest
  try {
    request = JSON.parse(body) as CreateRequest
  } catch {
    return refusal(400, 'json_error', 'invalid JSON')
  }
  const { name, labels = {}, user_data: userData = '', ssh_keys: keys = [] } = request
  if (!/^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,61}[a-zA-Z0-9])?$/.test(name ?? ''))
    return invalidField('name', 'is not a hostname')
  if (findWrongLabel(labels)) return invalidField('labels', 'has an invalid value')
  if (Buffer.byteLength(userData) > 32_768) return invalidField('user_data', 'is longer than 32768 bytes')
  const [serverType] = byNameOrId(serverTypes, request.server_type)
  if (!serverType) return refusal(422, 'invalid_input', `server type ${request.server_type} not found`)
  const [location] = byNameOrId(locations, request.location ?? 'fsn1')
  if (!location) return refusal(422, 'invalid_input', `location ${request.location} not found`)
  const image = byNameOrId(images, request.image).find(({ architecture }) => architecture === serverType.architecture)
  if (!image) return notFound('image')
  if (keys.some((key) => byNameOrId(sshKeys, key).length === 0)) return notFound('ssh_key')
  const wanted = request.public_net?.ipv4
  const address = project.addresses().find(({ id }) => id === wanted)
  if (wanted !== undefined && !address) return invalidField('public_net.ipv4', 'primary IP not found')
  if (address && isAssigned(project, address))
    return refusal(422, 'primary_ip_already_assigned', 'primary IP is already assigned')
  // Not only those that the list has.
  if (project.servers().some((server) => server.name === name))
    return refusal(409, 'uniqueness_error', 'server name is already used', { fields: [{ name: 'name' }] })
  const { server, action, nextActions } = project.create(request, serverType, location)
  return {
    status: 201,
    body: {
      server: presentServer(server),
      action: presentAction(action),
      next_actions: nextActions.map(presentAction),
      root_password: keys.length > 0 ? null : 'a-generated-root-password',
    },
  }
}
