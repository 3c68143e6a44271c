/**
 * The search attributes of the workflows. Temporal stores them unencrypted and shows them to operators, so none may
 * contain a secret or an email address. `platform/temporal.ts` lists the same names for their registration.
 */
import { defineSearchAttributeKey } from '@temporalio/common'

export const UserIdAttribute = defineSearchAttributeKey('UserId', 'KEYWORD')

/** Of a relay session, and of the warm instances of a region. */
export const RegionAttribute = defineSearchAttributeKey('Region', 'KEYWORD')

export const ConnectionAttribute = defineSearchAttributeKey('Connection', 'KEYWORD')

export const RelayStateAttribute = defineSearchAttributeKey('RelayState', 'KEYWORD')

export const PlanTierAttribute = defineSearchAttributeKey('PlanTier', 'KEYWORD')

export const PlanStatusAttribute = defineSearchAttributeKey('PlanStatus', 'KEYWORD')
