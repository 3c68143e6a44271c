/**
 * The parts of the Hetzner Cloud API's replies that the provider reads. All other fields are dropped, such as root
 * passwords.
 */
import { z } from 'zod'

const Server = z.object({
  id: z.int().positive(),
  name: z.string(),
  status: z.string(),
  created: z.iso.datetime({ offset: true }),
  public_net: z.object({
    ipv4: z.object({ id: z.int().positive(), ip: z.string().min(1) }).nullish(),
    /** `ip` is the network of the server: `2001:db8:1::/64`. */
    ipv6: z.object({ ip: z.string() }).nullish(),
  }),
  labels: z.record(z.string(), z.string()),
})
export type Server = z.infer<typeof Server>

const Action = z.object({
  id: z.int().positive(),
  command: z.string(),
  status: z.enum(['running', 'success', 'error']),
  error: z.object({ code: z.string(), message: z.string() }).nullish(),
})
export type Action = z.infer<typeof Action>

export const CreateReply = z.object({ server: Server, action: Action, next_actions: z.array(Action).default([]) })
export const ServerReply = z.object({ server: Server })
export const ActionsReply = z.object({ actions: z.array(Action) })
const PageMeta = z.object({
  pagination: z.object({ next_page: z.int().nullable(), last_page: z.int().nullable() }),
})
export type PageMeta = z.infer<typeof PageMeta>

export const ServersReply = z.object({ servers: z.array(Server), meta: PageMeta })

const PrimaryIp = z.object({
  id: z.int().positive(),
  ip: z.string().min(1),
  assignee_id: z.int().nullish(),
  labels: z.record(z.string(), z.string()),
})
export type PrimaryIp = z.infer<typeof PrimaryIp>

export const PrimaryIpReply = z.object({ primary_ip: PrimaryIp })
export const PrimaryIpsReply = z.object({ primary_ips: z.array(PrimaryIp), meta: PageMeta })
/** Of a deletion, whose reply has no body. */
export const NoReply = z.unknown()

const ServerType = z.object({
  name: z.string(),
  architecture: z.string(),
  locations: z.array(z.object({ id: z.int(), name: z.string() })).optional(),
})
export const ServerTypesReply = z.object({ server_types: z.array(ServerType) })
export const ServerTypeReply = z.object({ server_type: ServerType })

const Location = z.object({ id: z.int(), name: z.string() })
export const LocationsReply = z.object({ locations: z.array(Location) })
export const LocationReply = z.object({ location: Location })

const Image = z.object({ status: z.string(), architecture: z.string() })
export const ImagesReply = z.object({ images: z.array(Image) })
export const ImageReply = z.object({ image: Image })

const SshKey = z.object({ id: z.int() })
export const SshKeysReply = z.object({ ssh_keys: z.array(SshKey) })
export const SshKeyReply = z.object({ ssh_key: SshKey })

export const ErrorReply = z.object({ error: z.object({ code: z.string(), message: z.string().catch('') }) })
export const DeleteReply = z.object({ action: Action })
