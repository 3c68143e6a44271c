/** The regions that relays are started in: `SVC_REGIONS`, a JSON array. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { relayReleasedAt, relayVersion } from '../../domain/relay/version.ts'
import { isUnspecified } from '../ip-addresses.ts'

/** A region of this name would be mistaken for the request to choose one. */
export const autoRegion = 'auto'

export const regionProviders = ['local', 'aws', 'hetzner'] as const

/** How machines are created on EC2. Each subnet belongs to one zone; they are used in this order. */
const AwsSettings = z.strictObject({
  region: z.string().regex(/^[a-z]{2}(-[a-z]+)+-\d$/, 'is not a region of AWS, for example eu-central-1'),
  image_id: z.string().regex(/^ami-[0-9a-f]+$/, 'is not an image id, for example ami-0123456789abcdef0'),
  instance_type: z.string().regex(/^[a-z0-9-]+\.[a-z0-9-]+$/, 'is not an instance type, for example t4g.small'),
  subnet_ids: z.array(z.string().regex(/^subnet-[0-9a-f]+$/, 'is not a subnet id')).min(1),
  security_group_ids: z.array(z.string().regex(/^sg-[0-9a-f]+$/, 'is not a security group id')).min(1),
})
export type AwsSettings = z.infer<typeof AwsSettings>

/** How servers are created at Hetzner Cloud. */
const HetznerSettings = z.strictObject({
  location: z.string().min(1),
  server_type: z.string().min(1),
  /** The name or the id of an image or a snapshot. */
  image: z.string().min(1),
  /** Names or ids. Without a key Hetzner sends a root password by email for each server. */
  ssh_keys: z.array(z.string().min(1)).optional(),
})
export type HetznerSettings = z.infer<typeof HetznerSettings>

const Image = z.strictObject({
  image_id: z.string().min(1),
  version: z.string().min(1),
  released_at: z.iso.datetime({ offset: true }),
})

/** Names are those of DNS. A text of digits and dots that is no address is a misspelt one. */
const isPublicHost = (text: string): boolean =>
  isIP(text) !== 0
    ? !isUnspecified(text)
    : /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(text) && !/^[\d.]+$/.test(text)

const Region = z
  .strictObject({
    region: z
      .string()
      .regex(/^[a-z0-9-]{1,32}$/, 'is not 1 to 32 lower-case letters, digits and hyphens')
      .refine((name) => name !== autoRegion, `is reserved: with "region":"${autoRegion}" a start chooses the region`),
    display_name: z.string().min(1).max(64),
    provider: z.enum(regionProviders),
    default: z.boolean().default(false),
    /** The maximum number of instances in this region. */
    capacity: z.int().min(0).default(50),
    /** The number of instances that are kept ready. They are part of the capacity. */
    warm: z.int().min(0).default(0),
    /**
     * The image that relays of this region run, as the manifest reports it. A new one replaces the warm instances one
     * by one.
     */
    image: Image.optional(),
    /** An address near the relays that browsers measure the latency of. */
    ping_url: z.url({ protocol: /^https?$/ }).optional(),
    /** Provider `local`: the address that the relays bind. */
    host: z
      .string()
      .refine(
        (text) => isIP(text) !== 0,
        'is no IP address, and relays bind one: set host to an address of this machine or to 0.0.0.0, and public_host to the name that users reach',
      )
      .optional(),
    /** Provider `local`: the address or the name of the relays for users, when it is another one. */
    public_host: z
      .string()
      .refine((text) => isPublicHost(text), 'is neither an address nor a name that users can reach, without a port')
      .optional(),
    aws: AwsSettings.optional(),
    hetzner: HetznerSettings.optional(),
    /** Provider `aws` or `hetzner`: a session keeps its address when its relay is replaced. */
    stable_address: z.boolean().default(false),
  })
  .superRefine((region, context) => {
    for (const provider of ['aws', 'hetzner'] as const) {
      const isSet = region[provider] !== undefined
      if (region.provider === provider && !isSet)
        context.addIssue({ code: 'custom', path: [provider], message: `is required with "provider":"${provider}"` })
      if (region.provider !== provider && isSet)
        context.addIssue({ code: 'custom', path: [provider], message: `belongs to "provider":"${provider}"` })
    }
    for (const key of ['host', 'public_host'] as const)
      if (region.provider !== 'local' && region[key] !== undefined)
        context.addIssue({ code: 'custom', path: [key], message: 'belongs to "provider":"local"' })
    if (region.provider === 'local' && region.stable_address)
      context.addIssue({
        code: 'custom',
        path: ['stable_address'],
        message: 'belongs to "provider":"aws" and "hetzner": relays on one machine keep its address',
      })
    if (region.host !== undefined && isUnspecified(region.host) && region.public_host === undefined)
      context.addIssue({
        code: 'custom',
        path: ['host'],
        message: 'stands for all addresses, which nobody can reach: set public_host to the address or name for users',
      })
    if (region.warm > region.capacity)
      context.addIssue({ code: 'custom', path: ['warm'], message: 'is more than the capacity' })
  })
  .transform((region) => ({
    ...region,
    host: region.host ?? '127.0.0.1',
    image: region.image ?? defaultImage(region),
  }))

export type RegionConfig = z.infer<typeof Region>

const defaultImage = ({ aws, hetzner }: { aws?: AwsSettings | undefined; hetzner?: HetznerSettings | undefined }) => ({
  image_id: aws?.image_id ?? hetzner?.image ?? 'relay-node',
  version: relayVersion,
  released_at: relayReleasedAt,
})

/** What an instance runs: instances with another text run an old image. */
export const imageKey = ({ image }: Pick<RegionConfig, 'image'>): string => `${image.image_id}@${image.version}`

export const defaultRegions = JSON.stringify([
  { region: 'local', display_name: 'This machine', provider: 'local', default: true },
])

const jsonText = z.string().transform((text, context) => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    context.addIssue({ code: 'custom', message: 'is not JSON' })
    return z.NEVER
  }
})

export const regions = jsonText.pipe(
  z
    .array(Region)
    .min(1, 'has no region')
    .refine((all) => new Set(all.map(({ region }) => region)).size === all.length, 'has two regions with the same name')
    .refine((all) => all.filter((region) => region.default).length <= 1, 'has more than one default region'),
)
