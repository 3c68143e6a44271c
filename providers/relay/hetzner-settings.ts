/** Checks that the server type, the location and the image of a region exist at Hetzner, and fit together. */
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
} from './hetzner-shapes.ts'

/** Rejects with an error that names the wrong setting. Creates nothing. */
export async function checkSettings(client: HetznerClient, region: string, settings: HetznerSettings): Promise<void> {
  const { server_type: typeName, location: locationName, image: imageName } = settings
  const name = (field: string, value: string) => `SVC_REGIONS, region "${region}": hetzner.${field} "${value}"`

  const type = isId(typeName)
    ? (await find(client, `/server_types/${typeName}`, ServerTypeReply))?.server_type
    : (await list(client, '/server_types', typeName, ServerTypesReply)).server_types[0]
  if (!type) throw configurationError(`${name('server_type', typeName)} does not exist: see GET /server_types`)

  const location = isId(locationName)
    ? (await find(client, `/locations/${locationName}`, LocationReply))?.location
    : (await list(client, '/locations', locationName, LocationsReply)).locations[0]
  if (!location) throw configurationError(`${name('location', locationName)} does not exist: see GET /locations`)
  if (type.locations && !type.locations.some(({ id }) => id === location.id))
    throw configurationError(`${name('server_type', typeName)} is not offered in location "${location.name}"`)

  const { architecture } = type
  const image = isId(imageName)
    ? (await find(client, `/images/${imageName}`, ImageReply))?.image
    : (await list(client, '/images', imageName, ImagesReply, [['architecture', architecture]])).images[0]
  if (!image)
    throw configurationError(`${name('image', imageName)} does not exist for the architecture ${architecture}`)
  if (image.architecture !== architecture)
    throw configurationError(
      `${name('image', imageName)} is for ${image.architecture}, and ${type.name} is ${architecture}`,
    )
  if (image.status !== 'available') throw configurationError(`${name('image', imageName)} is ${image.status}`)
}

/** Everything at Hetzner has a numeric id; snapshots have no name. */
const isId = (text: string): boolean => /^\d+$/.test(text)

const list = <Shape extends z.ZodType>(
  client: HetznerClient,
  path: string,
  name: string,
  shape: Shape,
  query: readonly (readonly [string, string])[] = [],
) => client.request({ method: 'GET', path, query: [['name', name], ...query] }, shape)

const find = <Shape extends z.ZodType>(client: HetznerClient, path: string, shape: Shape) =>
  client.request({ method: 'GET', path }, shape).catch((error: unknown) => {
    if (hasCode(error, 'not_found')) return undefined
    throw error
  })
