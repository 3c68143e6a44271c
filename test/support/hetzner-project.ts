/** The state behind the double of the Hetzner Cloud API: one project with its servers and their actions. */

export type Labels = Readonly<Record<string, string>>

export interface CreateRequest {
  readonly name: string
  readonly server_type: string
  readonly image: string
  readonly location?: string
  readonly ssh_keys?: readonly string[]
  readonly labels?: Labels
  readonly user_data?: string
  readonly public_net?: { readonly enable_ipv4?: boolean; readonly enable_ipv6?: boolean; readonly ipv4?: number }
}

export interface ActionError {
  readonly code: string
  readonly message: string
}

interface StoredAction {
  readonly id: number
  readonly command: string
  readonly serverId: number
  readonly startedAt: number
  readonly endsAt: number
  readonly error: ActionError | null
}

export interface StoredServer {
  readonly id: number
  readonly name: string
  labels: Labels
  readonly userData: string | undefined
  readonly serverType: ServerType
  readonly location: Location
  readonly address: string
  /** The Primary IP of the address. */
  readonly addressId: number
  /** A network of IPv6, of which the server has the first address; null for none. */
  readonly ipv6Network: string | null
  readonly addressAt: number
  readonly createdAt: number
  /** The end of the action `create_server`. */
  readonly readyAt: number
  isLocked: boolean
  /** Its power is off, so nothing runs on it. */
  isOff?: boolean
  /** When it is gone; infinite until its deletion is requested. */
  goneAt: number
}

/** A Primary IP of version 4. */
export interface StoredAddress {
  readonly id: number
  readonly ip: string
  labels: Labels
  autoDelete: boolean
  /** The server that has it, as long as that exists. */
  serverId: number
}

export type ServerType = (typeof serverTypes)[number]
export type Location = (typeof locations)[number]

export const locations = [
  { id: 1, name: 'fsn1', description: 'Falkenstein DC Park 1', country: 'DE', network_zone: 'eu-central' },
  { id: 2, name: 'nbg1', description: 'Nuremberg DC Park 1', country: 'DE', network_zone: 'eu-central' },
  { id: 4, name: 'ash', description: 'Ashburn, VA', country: 'US', network_zone: 'us-east' },
] as const

const offeredAt = (...names: string[]) =>
  locations
    .filter(({ name }) => names.includes(name))
    .map(({ id, name }) => ({ id, name, deprecation: null, available: true, recommended: true }))

export const serverTypes = [
  { id: 22, name: 'cx22', cores: 2, memory: 4, architecture: 'x86', locations: offeredAt('fsn1', 'nbg1') },
  { id: 45, name: 'cax11', cores: 2, memory: 4, architecture: 'arm', locations: offeredAt('fsn1', 'nbg1') },
  { id: 109, name: 'cpx11', cores: 2, memory: 2, architecture: 'x86', locations: offeredAt('ash') },
] as const

export const images = [
  { id: 3001, type: 'system', status: 'available', name: 'debian-13', architecture: 'x86' },
  { id: 3002, type: 'system', status: 'available', name: 'debian-13', architecture: 'arm' },
  { id: 4711, type: 'snapshot', status: 'available', name: null, architecture: 'x86' },
  { id: 4712, type: 'snapshot', status: 'creating', name: null, architecture: 'x86' },
] as const

export const sshKeys = [
  { id: 2323, name: 'operations', fingerprint: 'b7:2f:30:a0:2f:6c:58:6c:21:04:58:61:ba:06:3b:2f' },
] as const

export class HetznerProject {
  /** How long the list of servers lacks a new server. */
  listLagMillis = 0
  /** The duration of `create_server`. */
  createMillis = 0
  /** How long after the request a server has no address. */
  addressMillis = 0
  /** The duration of `delete_server`. */
  deleteMillis = 0
  /** The next actions with this command end with the error. */
  readonly actionFailures: { readonly command: 'create_server' | 'start_server'; readonly error: ActionError }[] = []
  /** How often a server was created, by name. */
  readonly creations = new Map<string, number>()

  readonly #servers = new Map<number, StoredServer>()
  readonly #addresses = new Map<number, StoredAddress>()
  readonly #actions = new Map<number, StoredAction>()
  readonly #mostAtOnce = new Map<string, number>()
  #nextId = 1

  create(request: CreateRequest, serverType: ServerType, location: Location) {
    const now = Date.now()
    const id = this.#nextId++
    const reserved = this.#addresses.get(request.public_net?.ipv4 ?? 0)
    const ip = reserved?.ip ?? `203.0.${113 + Math.floor(id / 250)}.${(id % 250) + 1}`
    const address = reserved ?? { id: id + 10_000, ip, labels: {}, autoDelete: true, serverId: id }
    address.serverId = id
    this.#addresses.set(address.id, address)
    const server: StoredServer = {
      id,
      name: request.name,
      labels: request.labels ?? {},
      userData: request.user_data,
      serverType,
      location,
      address: ip,
      addressId: address.id,
      ipv6Network: request.public_net?.enable_ipv6 === false ? null : `2001:db8:${id.toString(16)}::/64`,
      addressAt: now + this.addressMillis,
      createdAt: now,
      readyAt: now + this.createMillis,
      isLocked: false,
      goneAt: Number.POSITIVE_INFINITY,
    }
    this.#servers.set(id, server)
    this.creations.set(request.name, (this.creations.get(request.name) ?? 0) + 1)
    this.#countLabels(server.labels)
    const action = this.#act('create_server', server, server.readyAt)
    return { server, action, nextActions: [this.#act('start_server', server, server.readyAt)] }
  }

  delete(server: StoredServer) {
    server.goneAt = Math.min(server.goneAt, Date.now() + this.deleteMillis)
    return this.#act('delete_server', server, server.goneAt)
  }

  /** All servers that exist, by id. */
  servers(): StoredServer[] {
    return [...this.#servers.values()].filter(({ goneAt }) => Date.now() < goneAt)
  }

  find(id: number): StoredServer | undefined {
    return this.servers().find((server) => server.id === id)
  }

  /** All Primary IPs that exist, by id. An automatic one ends with its server. */
  addresses(): StoredAddress[] {
    return [...this.#addresses.values()].filter(({ autoDelete, serverId }) => !autoDelete || this.find(serverId))
  }

  deleteAddress({ id }: StoredAddress): void {
    this.#addresses.delete(id)
  }

  /** The servers that the list of servers has. */
  listed(): StoredServer[] {
    return this.servers().filter(({ createdAt }) => Date.now() >= createdAt + this.listLagMillis)
  }

  actions(isWanted: (action: { id: number; serverId: number }) => boolean): StoredAction[] {
    return [...this.#actions.values()].filter(isWanted)
  }

  /** The highest number of servers that existed at the same time with a value of a label. */
  mostAtOnce(label: string, value: string): number {
    return this.#mostAtOnce.get(`${label}=${value}`) ?? 0
  }

  /** Adds a server that another program created. */
  addForeign(name: string, labels: Labels): StoredServer {
    const request = { name, labels, server_type: 'cx22', image: 'debian-13' }
    return this.create(request, serverTypes[0], locations[0]).server
  }

  #act(command: string, server: StoredServer, endsAt: number): StoredAction {
    const failure = this.actionFailures.findIndex((planned) => planned.command === command)
    const [planned] = failure === -1 ? [] : this.actionFailures.splice(failure, 1)
    const action = {
      id: this.#nextId++,
      command,
      serverId: server.id,
      startedAt: Date.now(),
      endsAt,
      error: planned?.error ?? null,
    }
    this.#actions.set(action.id, action)
    return action
  }

  #countLabels(labels: Labels): void {
    for (const [label, value] of Object.entries(labels)) {
      const now = this.servers().filter((server) => server.labels[label] === value).length
      this.#mostAtOnce.set(`${label}=${value}`, Math.max(this.mostAtOnce(label, value), now))
    }
  }
}

const isoTime = (millis: number): string => `${new Date(millis).toISOString().slice(0, 19)}Z`

export function presentServer(server: StoredServer) {
  const {
    id,
    name,
    labels,
    serverType,
    location,
    address,
    addressId,
    ipv6Network,
    addressAt,
    createdAt,
    readyAt,
    isLocked,
    isOff,
    goneAt,
  } = server
  const now = Date.now()
  const isDeleting = goneAt !== Number.POSITIVE_INFINITY
  return {
    id,
    name,
    status: isDeleting ? 'deleting' : isOff ? 'off' : now < readyAt ? 'initializing' : 'running',
    created: isoTime(createdAt),
    public_net: {
      ipv4: now < addressAt ? null : { id: addressId, ip: address, blocked: false, dns_ptr: `${name}.example` },
      ipv6: ipv6Network && { id: id + 20_000, ip: ipv6Network, blocked: false, dns_ptr: [] },
      floating_ips: [],
      firewalls: [],
    },
    private_net: [],
    server_type: serverType,
    location,
    image: { ...images[0], description: 'Debian 13', os_flavor: 'debian', os_version: '13' },
    iso: null,
    rescue_enabled: false,
    locked: isLocked || isDeleting || now < readyAt,
    backup_window: null,
    outgoing_traffic: 0,
    ingoing_traffic: 0,
    included_traffic: 21_990_232_555_520,
    protection: { delete: false, rebuild: false },
    labels,
    volumes: [],
    load_balancers: [],
    primary_disk_size: 40,
  }
}

export function presentAction({ id, command, serverId, startedAt, endsAt, error }: StoredAction) {
  const hasEnded = Date.now() >= endsAt
  return {
    id,
    command,
    status: !hasEnded ? 'running' : error ? 'error' : 'success',
    progress: hasEnded ? 100 : 0,
    started: isoTime(startedAt),
    finished: hasEnded ? isoTime(endsAt) : null,
    resources: [{ id: serverId, type: 'server' }],
    error: hasEnded ? error : null,
  }
}

/** Expressions of the label selector: `k`, `!k`, `k==v`, `k=v` and `k!=v`, with commas between. */
export function matchesSelector(labels: Labels, selector: string): boolean {
  return selector.split(',').every((expression) => {
    const [, key = '', operator, value = ''] = /^([^=!]+)(==|=|!=)(.*)$/.exec(expression) ?? []
    if (operator === undefined)
      return expression.startsWith('!') ? !(expression.slice(1) in labels) : expression in labels
    return operator === '!=' ? labels[key] !== value : labels[key] === value
  })
}
