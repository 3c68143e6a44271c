/** Checks that what the settings of a region name exists at Hetzner, and that it fits together. */
import type { z } from 'zod'
import type { HetznerSettings } from '../../platform/config/regions.ts'
import type { HetznerClient } from './hetzner-client.ts'
import { configurationError, hasCode } from './hetzner-errors.ts'
import {
  ImageReply,
  ImagesReply,
  LocationReply,
  LocationsReply,
  ServerTypeReply,
  ServerTypesReply,
  SshKeyReply,
  SshKeysReply,
} from './hetzner-shapes.ts'

/** Rejects with an error that names the wrong setting. Creates nothing. */
export async function checkSettings(client: HetznerClient, region: string, settings: HetznerSettings): Promise<void> {
  const { server_type: typeName, location: locationName, image: imageName, ssh_keys: keyNames = [] } = settings
  const wrong = (field: string, value: string, text: string) =>
    configurationError(`SVC_REGIONS, region "${region}": hetzner.${field} "${value}" ${text}`)

  const type = await findServerType(client, typeName)
  if (!type) throw wrong('server_type', typeName, 'does not exist: see GET /server_types')

  const location = await findLocation(client, locationName)
  if (!location) throw wrong('location', locationName, 'does not exist: see GET /locations')
  if (type.locations && !type.locations.some(({ id }) => id === location.id))
    throw wrong('server_type', typeName, `is not offered in location "${location.name}"`)

  const { architecture } = type
  const image = await findImage(client, imageName, architecture)
  if (!image) throw wrong('image', imageName, `does not exist for the architecture ${architecture}`)
  if (image.architecture !== architecture)
    throw wrong('image', imageName, `is for ${image.architecture}, and ${type.name} is ${architecture}`)
  if (image.status !== 'available') throw wrong('image', imageName, `is ${image.status}`)

  for (const key of keyNames)
    if (!(await findSshKey(client, key))) throw wrong('ssh_keys', key, 'does not exist in the project of the token')
}

const findServerType = async (client: HetznerClient, name: string) =>
  isId(name)
    ? (await read(client, `/server_types/${name}`, ServerTypeReply))?.server_type
    : (await list(client, '/server_types', [['name', name]], ServerTypesReply)).server_types[0]

const findLocation = async (client: HetznerClient, name: string) =>
  isId(name)
    ? (await read(client, `/locations/${name}`, LocationReply))?.location
    : (await list(client, '/locations', [['name', name]], LocationsReply)).locations[0]

/** Images of several architectures have the same name; snapshots have none. */
async function findImage(client: HetznerClient, name: string, architecture: string) {
  if (isId(name)) return (await read(client, `/images/${name}`, ImageReply))?.image
  const query = [['name', name] as const, ['architecture', architecture] as const]
  return (await list(client, '/images', query, ImagesReply)).images[0]
}

const findSshKey = async (client: HetznerClient, name: string) =>
  isId(name)
    ? (await read(client, `/ssh_keys/${name}`, SshKeyReply))?.ssh_key
    : (await list(client, '/ssh_keys', [['name', name]], SshKeysReply)).ssh_keys[0]

const isId = (text: string): boolean => /^\d+$/.test(text)

const list = <Shape extends z.ZodType>(
  client: HetznerClient,
  path: string,
  query: readonly (readonly [string, string])[],
  shape: Shape,
) => client.request({ method: 'GET', path, query }, shape)

const read = <Shape extends z.ZodType>(client: HetznerClient, path: string, shape: Shape) =>
  client.request({ method: 'GET', path }, shape).catch((error: unknown) => {
    if (hasCode(error, 'not_found')) return undefined
    throw error
  })
