/**
 * The labels that mark a server as an instance of one region of one fleet. Servers without them are never listed or
 * deleted.
 */
import type { RelaySpec } from './provider.ts'

export interface LabelScope {
  readonly region: string
  readonly fleetName: string | undefined
}

export type Labels = Readonly<Record<string, string>>

/** Hetzner's rule for values of labels. Host names, which servers have as names, may also contain these characters. */
export const isLabelValue = (text: string): boolean => /^([A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?)?$/.test(text)

export const labelsOf = (
  { region, fleetName }: LabelScope,
  { instanceId, sessionId }: Pick<RelaySpec, 'instanceId' | 'sessionId'>,
): Labels => ({
  'svc-instance': instanceId,
  'svc-session': sessionId ?? '',
  'svc-region': region,
  ...(fleetName === undefined ? {} : { 'svc-fleet': fleetName }),
})

export const selectorOf = ({ region, fleetName }: LabelScope, sessionId?: string): string =>
  [
    'svc-instance',
    `svc-region==${region}`,
    fleetName === undefined ? '!svc-fleet' : `svc-fleet==${fleetName}`,
    ...(sessionId === undefined ? [] : [`svc-session==${sessionId}`]),
  ].join(',')

/** Servers of the region, whatever fleet they belong to. */
export const selectorOfAllFleets = ({ region }: LabelScope): string => `svc-instance,svc-region==${region}`

export const fleetNameOf = (labels: Labels): string | null => labels['svc-fleet'] ?? null

export const withFleetName = (labels: Labels, fleetName: string): Labels => ({ ...labels, 'svc-fleet': fleetName })

/** The instance id of a server with these labels; undefined for servers of others. */
export function instanceIdOf({ region, fleetName }: LabelScope, labels: Labels): string | undefined {
  if (labels['svc-region'] !== region || labels['svc-fleet'] !== fleetName) return undefined
  return labels['svc-instance'] || undefined
}
